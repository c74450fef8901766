// Many clips as one file: all of them, named as they are saved, or a refusal before the first byte.
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openStage, type Stage, UNKNOWN_ID } from '../../../../test/endpoints/stage.ts'
import { allStates } from '../../../../test/endpoints/states.ts'
import { idIn, startTestService, type TestService } from '../../../../test/service.ts'
import { readZip } from '../testing/read-zip.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_PARALLEL_PER_TOKEN: '1' })
})
afterAll(() => service.close())

let made = 0
const newClip = async (title = '', token = service.token) =>
  idIn(await service.readyAlike(Buffer.from(`clip ${made++}`), [['title', title]], { token }))
const archive = (ids: readonly string[], query = '', token = service.token, on = service) =>
  on.get(`/media/archive?ids=${ids}${query}`, { token })
const codeOf = ({ status, body }: Awaited<ReturnType<typeof archive>>) => [status, body.error.code]

test('an archive has the mp4 of each clip in the order of the ids, and its length is known before', async () => {
  const ids = [await newClip('A cat jumps'), await newClip('Grüße 🎈')]
  const answer = await archive([ids[1] ?? '', ids[0] ?? '', ids[1] ?? ''])
  expect(answer.status).toBe(200)
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': 'application/zip',
    'content-length': String(answer.bytes.length),
    'content-disposition': 'attachment; filename="clips.zip"',
    'cache-control': 'private, no-store',
  })
  const contentOf = async (id = '') => (await service.get(`/f/${id}.mp4`)).bytes
  expect(readZip(answer.bytes)).toEqual([
    { name: 'Grüße 🎈.mp4', content: await contentOf(ids[1]), modifiedAt: expect.any(Date) },
    { name: 'A cat jumps.mp4', content: await contentOf(ids[0]), modifiedAt: expect.any(Date) },
  ])
})

test('another kind of file can be asked for', async () => {
  const id = await newClip('A cat')
  const [file] = readZip((await archive([id], '&kind=gif')).bytes)
  expect([file?.name, file?.content]).toEqual(['A cat.gif', (await service.get(`/f/${id}.gif`)).bytes])
  expect(codeOf(await archive([id], '&kind=exe'))).toEqual([422, 'invalid_field'])
})

test('HEAD has the headers of GET, and opens no file', async () => {
  const id = await newClip('A cat')
  const { headers } = await archive([id])
  const open = vi.spyOn(service.deps.blobs, 'open')
  onTestFinished(() => open.mockRestore())
  const head = await service.call('HEAD', `/media/archive?ids=${id}`, { headers: { token: service.token } })
  expect(head.status).toBe(200)
  for (const name of ['content-type', 'content-length', 'content-disposition', 'cache-control']) {
    expect(head.headers.get(name), name).toBe(headers.get(name))
  }
  expect(open).not.toHaveBeenCalled()
})

test('names are unique, on systems that ignore case too, and lead nowhere else', async () => {
  const titles = [
    ...['Cat', 'cat', 'CAT (2)', 'cat', '../../etc/passwd', '/etc/passwd', '..\\..\\boot.ini', 'C:\\x', 'con', ''],
    ...['a\u0000b', '\u202egnp.exe', '...', 'x'.repeat(200)],
  ]
  const ids: string[] = []
  for (const title of titles) {
    const id = await newClip('x')
    // Titles of today are cleaned before they are stored.
    await service.deps.pool.query('update clips set title = $2 where id = $1', [id, title.replace('\0', '')])
    ids.push(id)
  }
  const names = readZip((await archive(ids)).bytes).map(({ name }) => name)
  expect(names).toEqual([
    ...['Cat.mp4', 'cat (2).mp4', 'CAT (2) (2).mp4', 'cat (3).mp4', 'etc passwd.mp4', 'etc passwd (2).mp4'],
    ...['boot.ini.mp4', 'C x.mp4', `${ids[8]}.mp4`, `${ids[9]}.mp4`, 'ab.mp4', 'gnp.exe.mp4', `${ids[12]}.mp4`],
    `${'x'.repeat(60)}.mp4`,
  ])
  expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(ids.length)
  for (const name of names) expect(name).not.toMatch(/^[./]|[/\\:]/)
})

describe('an archive is refused before its first byte', () => {
  test('for more than 100 clips', async () => {
    const ids = Array.from({ length: 101 }, (_, n) => `A${String(n).padStart(7, '0')}`)
    const answer = await archive(ids)
    expect([...codeOf(answer), answer.body.error.details]).toEqual([
      422,
      'archive_too_large',
      { clips: 101, max_clips: 100, max_bytes: 2_000_000_000 },
    ])
    expect(codeOf(await archive(ids.slice(1)))).toEqual([404, 'not_found'])
  })

  test('for more than 2 GB', async () => {
    const ids = [await newClip(), await newClip()]
    await service.deps.pool.query(
      `update renditions set bytes = 1000000001 where kind = 'mp4'
       and source_id in (select source_id from clips where id = any($1))`,
      [ids],
    )
    expect(codeOf(await archive(ids))).toEqual([422, 'archive_too_large'])
  })

  test('for texts that are no ids of clips', async () => {
    const { status, body } = await archive(['%00', 'x%00y', UNKNOWN_ID])
    expect([status, body.error.details]).toEqual([404, { ids: ['\0', 'x\0y', UNKNOWN_ID] }])
  })

  test('for no clip, and without a token that may read', async () => {
    expect(codeOf(await archive([]))).toEqual([422, 'invalid_field'])
    expect(codeOf(await archive([','])), 'only a comma').toEqual([422, 'invalid_field'])
    expect((await service.get(`/media/archive?ids=${UNKNOWN_ID}`)).status).toBe(401)
    const { token } = await service.newToken({ scopes: ['write', 'delete'] })
    expect((await archive([UNKNOWN_ID], '', token)).status).toBe(403)
  })

  test('if the first file is not in the store', async () => {
    const id = await newClip()
    const open = vi.spyOn(service.deps.blobs, 'open').mockResolvedValue(undefined)
    onTestFinished(() => open.mockRestore())
    const answer = await archive([id])
    expect(codeOf(answer)).toEqual([500, 'internal'])
    expect(answer.headers.get('content-disposition')).toBeNull()
    open.mockRestore()
    expect((await archive([id])).status).toBe(200)
  })
})

test('a file that is lost in the middle breaks the connection, and frees its slot', async () => {
  const ids = [await newClip(), await newClip()]
  const blobs = service.deps.blobs
  const really = blobs.open
  let opened = 0
  const open = vi.spyOn(blobs, 'open').mockImplementation(async (...args) => (opened++ ? undefined : really(...args)))
  onTestFinished(() => open.mockRestore())
  await expect(archive(ids)).rejects.toThrow()
  open.mockRestore()
  expect((await archive(ids)).status).toBe(200)
})

/** Answers with a file that never ends. */
function holdFiles(on = service) {
  const files: Readable[] = []
  const open = vi.spyOn(on.deps.blobs, 'open').mockImplementation(async () => {
    const file = new Readable({ read() {} })
    file.push('some bytes')
    files.push(file)
    return file
  })
  onTestFinished(() => open.mockRestore())
  return { files, release: () => open.mockRestore() }
}

test('a token has as many archives at once as uploads, and a client that disconnects leaves no file open', async () => {
  const id = await newClip()
  const { files, release } = holdFiles()
  const client = httpRequest(`${service.url}/media/archive?ids=${id}`, { headers: { token: service.token } }).end()
  const [response] = (await once(client, 'response')) as [IncomingMessage]
  expect(response.statusCode).toBe(200)
  const refused = await archive([id])
  expect([...codeOf(refused), refused.headers.get('retry-after')]).toEqual([429, 'queue_full', '5'])
  expect(files.map(({ destroyed }) => destroyed)).toEqual([false])
  response.once('error', () => {})
  client.destroy()
  await expect.poll(() => files[0]?.destroyed).toBe(true)
  release()
  await expect.poll(async () => (await archive([id])).status).toBe(200)
})

test.for(['its longest time', 'a stop of the service'])(
  '%s ends an archive, whatever its client takes',
  async (end) => {
    const stop = new AbortController()
    const own = await startTestService(
      { MEDIA_WORKERS_ENABLED: 'false' },
      end === 'its longest time' ? { timeLimits: { archiveMs: 1 } } : { stopping: stop.signal },
    )
    onTestFinished(() => own.close())
    const id = idIn(await own.readyAlike(Buffer.from(`clip ${made++}`)))
    const { files } = holdFiles(own)
    const broken = expect(archive([id], '', own.token, own)).rejects.toThrow()
    await expect.poll(() => files.length).toBe(1)
    stop.abort()
    await broken
    await expect.poll(() => files[0]?.destroyed).toBe(true)
  },
)

describe('in every state', () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await openStage()
  })
  afterAll(() => stage.close())
  const states = [...new Map(allStates.toReversed().map((state) => [`${state.source} ${state.steps}`, state])).values()]

  test('a clip that has no file to show is as one that never was, to its owner, admins and strangers', async () => {
    const staged = []
    for (const { source, name, steps } of states) {
      staged.push({ what: `${source}, ${name}`, source, steps, ...(await stage.make(source, steps)) })
    }
    for (const { what, source, steps, id } of staged) {
      const isThere = !steps.includes('deleted') && !steps.includes('expired')
      const isHidden = steps.includes('hidden') && !steps.includes('shown again')
      const mayRead = source !== 'failed' && isThere && !isHidden
      const ask = (token: string) => archive([id], '', token, stage.service)
      for (const token of [stage.service.token, stage.admin])
        expect((await ask(token)).status, what).toBe(mayRead ? 200 : 404)
      const { status, body } = await ask(stage.stranger)
      expect([status, body.error.message, body.error.details], what).toEqual([
        404,
        'Some of these clips have no such file.',
        { ids: [id] },
      ])
    }
  })

  test('one such clip among others refuses them all, and is named', async () => {
    const [seen, hidden] = [await stage.make('ready', ['private']), await stage.make('ready', ['hidden'])]
    const { status, body } = await archive([seen.id, hidden.id, UNKNOWN_ID], '', stage.service.token, stage.service)
    expect([status, body.error.details]).toEqual([404, { ids: [hidden.id, UNKNOWN_ID] }])
  })
})
