import { hostname, userInfo } from 'node:os'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { clipCommands } from '../src/flows/clips/clip-commands.ts'
import { mediaHere } from './command-line.ts'
import { gif } from './gif-bytes.ts'
import { idIn, settingsOf, startTestService, type TestService } from './service.ts'

let service: TestService
let admin: { token: string; id: string }
let id: string
let widths = 20

beforeAll(async () => {
  service = await startTestService()
  admin = await service.newToken({ scopes: ['admin', 'read'] })
})
afterAll(() => service.close())
beforeEach(async () => {
  // Lists go by the time of creation.
  service.clock.advance({ seconds: 1 })
  const fields = [['title', 'Two\u001b[2J cats']] as [string, string][]
  id = idIn(await service.readyAlike(gif(widths++, 12, [{ delay: 10 }]), fields))
})

const run = (...args: string[]) => {
  const { url = '' } = service.deps.config.database
  const settings = {
    ...settingsOf(url, '/tmp/blobs'),
    MEDIA_DATABASE_POOLER: 'none',
    MEDIA_LOG_LEVEL: 'error',
  }
  return mediaHere(['clips', ...args], settings)
}
const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout)
const statusOf = async (path: string) => (await service.get(path)).status
const decisions = async () =>
  (await service.get(`/media/${id}/moderation`, { token: admin.token })).body.success.items as object[]

/** Commands that act, with the status of the page afterwards. */
const ACTS: Record<string, { args: string[]; says: string; status: number; recorded: object }> = {
  'clips hide': {
    args: ['--reason', 'copyright', '--note', 'by post'],
    says: 'is hidden',
    status: 451,
    recorded: { action: 'hide', reason: 'copyright', note: 'by post' },
  },
  'clips unhide': { args: [], says: 'is not hidden', status: 200, recorded: { action: 'unhide', note: null } },
  'clips delete': { args: ['--yes'], says: 'is deleted', status: 410, recorded: { action: 'delete', note: null } },
}
const READS = ['clips list', 'clips show']

test('every command is an act below, or reads', () => {
  const names = clipCommands.map(({ name }) => name)
  expect(names.toSorted()).toEqual([...Object.keys(ACTS), ...READS].toSorted())
})

test.for(Object.entries(ACTS))('%s acts and is recorded with the account of the machine', async ([name, act]) => {
  if (name === 'clips unhide') await run('hide', id)
  const { args, says, status, recorded } = act
  const result = await run(name.replace('clips ', ''), id, ...args)
  expect(result).toEqual({ code: 0, stdout: `${id} ${says}\n`, stderr: '' })
  expect(await statusOf(`/gif/${id}`)).toBe(status)
  const [latest] = await decisions()
  const operator = `${userInfo().username}@${hostname()}`
  expect(latest).toMatchObject({ ...recorded, origin: 'cli', operator, token_id: null })
})

test('a report of a clip is answered by a decision of the command line', async () => {
  const { status } = await service.call('POST', `/gif/${id}/report`, { body: new URLSearchParams({ reason: 'spam' }) })
  expect(status).toBe(202)
  await run('hide', id)
  const open = await service.get('/reports?state=open', { token: admin.token })
  expect(open.body.success.items).toEqual([])
})

test('show has details, files and decisions, also of a deleted clip', async () => {
  await run('hide', id, '--note', 'wait')
  const shown = await json('show', id)
  expect(shown).toMatchObject({
    ...{ id, state: 'hidden', hidden_reason: 'other', token_id: expect.any(String) },
    sizes: { gif: { bytes: expect.any(Number) }, mp4: { bytes: expect.any(Number) } },
    decisions: [{ action: 'hide', note: 'wait', origin: 'cli' }],
  })
  const { stdout } = await run('show', id)
  expect(stdout).toMatch(/^state {9}hidden$/m)
  expect(stdout).toMatch(/^title {9}Two\??.*cats$/m)
  expect(stdout).toMatch(/^decision {6}\S+Z {2}hide {2}cli {2}\S+@\S+ {2}wait$/m)
  expect(stdout).not.toContain('\u001b')
  await run('delete', id, '--yes')
  expect(await json('show', id)).toMatchObject({ id, state: 'deleted', decisions: [{ action: 'delete' }, {}] })
})

describe('list', () => {
  test('has the newest first, of all tokens, of one or of none', async () => {
    const other = await service.newToken({ scopes: ['write', 'read'] })
    service.clock.advance({ seconds: 1 })
    const theirs = idIn(await service.readyAlike(gif(widths++, 12, [{ delay: 10 }]), [], { token: other.token }))
    const ids = (clips: { id: string }[]) => clips.map((clip) => clip.id)
    expect(ids(await json('list', '--limit', '2'))).toEqual([theirs, id])
    expect(ids(await json('list', '--token', other.id))).toEqual([theirs])
    expect(await json('list', '--token', 'none')).toEqual([])
    expect(ids(await json('list', '--state', 'ready', '--limit', '1000'))).toContain(id)
    expect(ids(await json('list', '--state', 'failed'))).not.toContain(id)
  })

  test('prints one line for each', async () => {
    await run('hide', id)
    const { stdout } = await run('list', '--limit', '1')
    expect(stdout).toMatch(new RegExp(`^${id}  \\S+Z  hidden      \\d+ bytes  [0-9a-f-]{36}  Two.*cats\\n$`))
    expect(stdout).not.toContain('\u001b')
  })
})

test.for<[string[], number, string]>([
  [['list', '--limit', '1001'], 64, '--limit must be a number from 1 to 1000'],
  [['list', '--state', 'lost'], 64, '--state must be one of processing, ready, failed'],
  [['list', '--token', 'mine'], 64, 'no token of this id: mine'],
  [['hide', 'AAAAAAAA', '--reason', 'ugly'], 64, '--reason must be one of'],
  [['hide', 'AAAAAAAA'], 1, 'there is no such clip: AAAAAAAA'],
  [['show', '../x'], 1, 'there is no such clip: ../x'],
  [['delete', 'AAAAAAAA'], 64, 'needs --yes'],
])('clips %j ends with %i: %s', async ([args, code, words]) => {
  expect(await run(...args)).toEqual({ code, stdout: '', stderr: expect.stringContaining(words) })
})

test('a deleted clip is neither hidden nor deleted again, and the refusal is one line', async () => {
  await run('delete', id, '--yes')
  for (const args of [
    ['hide', id],
    ['delete', id, '--yes'],
  ]) {
    const { code, stdout, stderr } = await run(...args)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  }
})
