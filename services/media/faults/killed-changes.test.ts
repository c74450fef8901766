// A service killed while it changes visibility or lifetime of a clip. Each change takes place as a whole or not at all,
// and a repeated request completes it. No answered lifetime becomes shorter.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { openFaultReport } from '@services/common/testing/run/fault-report'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FormFields, idIn, send } from '../test/service.ts'
import { eventually, type ServiceProcess } from '../test/service-process.ts'
import { holdChange, type Step } from './held-change.ts'
import {
  expectNothingLost,
  importTo,
  LATER_MS,
  newClip,
  newTally,
  openStage,
  type Stage,
  TOKEN,
  tell,
  tidyUpLater,
  uploadTo,
} from './stage.ts'

const report = openFaultReport()
const WITHOUT_WORKERS = { MEDIA_WORKERS_ENABLED: 'false' }
const DAY_MS = 86_400_000

let stage: Stage
/** Makes the clips, and answers after the other process was killed. */
let api: ServiceProcess
const tally = newTally()

beforeAll(async () => {
  stage = await openStage()
  api = await stage.serve()
})
afterAll(() => stage.end())

/** Uploads a clip that is still there at the end. */
async function upload(clip: Uint8Array, fields: FormFields = []): Promise<string> {
  const answer = await uploadTo(api.url, clip, {}, fields)
  expect(await tell(tally, async () => answer)).toBe(201)
  return idIn(answer)
}

const json = { token: TOKEN, 'content-type': 'application/json' }
const call = (method: string, url: string, body?: object) =>
  send(method, url, body ? { headers: json, body: JSON.stringify(body) } : { headers: { token: TOKEN } })
const detailsOf = async (id: string) => (await call('GET', `${api.url}/media/${id}`)).body.success
const endOf = async (id: string) => Date.parse((await detailsOf(id)).expires_at)
const statusOf = async (path: string) => (await send('GET', api.url + path)).status
const publicStatuses = (id: string) =>
  Promise.all([`/gif/${id}`, `/embed/${id}`, `/f/${id}.mp4`, `/oembed/${id}`].map(statusOf))

/** Tombstones and private clips are no longer checked at the end. */
const forget = (id: string) => {
  tally.accepted = tally.accepted.filter((accepted) => accepted !== id)
}

/** Kills a service that a request has brought to the step; `end` decides about the transaction. */
async function killedDuring(
  step: Step,
  ask: (base: string) => Promise<unknown>,
  end: 'undo' | 'letPass',
  meanwhile = async () => {},
): Promise<void> {
  const service = await stage.serve(WITHOUT_WORKERS)
  const held = await holdChange(stage.url, step)
  const answered = ask(service.url).catch(() => 'broken')
  await held.hasBegun()
  await meanwhile()
  service.child.kill('SIGKILL')
  await service.ended
  expect(await answered).toBe('broken')
  await held[end]()
}

const commitOfClip: Step = { table: 'clips', on: 'update', at: 'commit' }

const ends = [
  ['rolled back', 'undo'],
  ['committed without an answer', 'letPass'],
] as const

test.for(ends)(
  'a service killed during a PATCH to private, which is %s: all of its fields change or none, and the same bytes stay public elsewhere',
  { timeout: 120_000 },
  async ([what, end]) => {
    const clip = newClip()
    const [id, twin] = [await upload(clip, [['title', 'Before']]), await upload(clip)]
    const change = { visibility: 'private', title: 'After', expires_in: '1h' }
    const patch = (base: string) => call('PATCH', `${base}/media/${id}`, change)
    await killedDuring(commitOfClip, patch, end)
    const isMade = end === 'letPass'
    await eventually(() => publicStatuses(id), Array(4).fill(isMade ? 404 : 200))
    const { visibility, title, expires_at: expiresAt } = await detailsOf(id)
    expect([visibility, title, expiresAt !== null]).toEqual(
      isMade ? ['private', 'After', true] : ['public', 'Before', false],
    )
    expect((await patch(api.url)).status).toBe(200)
    expect(await publicStatuses(id)).toEqual(Array(4).fill(404))
    expect(await publicStatuses(twin)).toEqual(Array(4).fill(200))
    forget(id)
    report(`service killed during a PATCH, ${what}`, { fields: isMade ? 'all' : 'none' })
  },
)

test.for(ends)(
  'a service killed while it ends the links of a private clip, which is %s: all links end or none, and a repeated request ends them',
  { timeout: 120_000 },
  async ([what, end]) => {
    const id = await upload(newClip(), [['visibility', 'private']])
    const { success } = (await call('POST', `${api.url}/media/${id}/links`, {})).body
    const paths = [success.url, success.files.mp4, success.files.gif].map((address: string) => {
      const { pathname, search } = new URL(address)
      return pathname + search
    })
    const statuses = () => Promise.all(paths.map(statusOf))
    const endLinks = (base: string) => call('DELETE', `${base}/media/${id}/links`)
    expect(await statuses()).toEqual([200, 200, 200])
    await killedDuring(commitOfClip, endLinks, end)
    expect(await statuses()).toEqual(Array(3).fill(end === 'letPass' ? 404 : 200))
    expect((await endLinks(api.url)).status).toBe(204)
    expect(await statuses()).toEqual([404, 404, 404])
    forget(id)
    report(`service killed while it ends links, ${what}`, { links: 3 })
  },
)

test.for(ends)(
  'a service killed while it blocks bytes that an import has just fetched, which is %s: the import follows the outcome',
  { timeout: 120_000 },
  async ([what, end]) => {
    const clip = newClip()
    const id = await upload(clip)
    const whole = Promise.withResolvers<void>()
    const site = createServer(async (_request, response) => {
      response.write(clip.subarray(0, 40))
      await whole.promise
      response.end(clip.subarray(40))
    })
    await new Promise<void>((done) => site.listen(0, '127.0.0.1', done))
    const importing = importTo(api.url, `http://127.0.0.1:${(site.address() as AddressInfo).port}/a.gif`)
    await eventually(async () => (await stage.temporary()).length, 1)
    const block = (base: string) => call('POST', `${base}/media/${id}/moderation`, { action: 'block' })
    await killedDuring({ table: 'blocked_hashes', on: 'insert', at: 'commit' }, block, end, async () => {
      whole.resolve()
      // The decision waits for the test, and the import for the decision.
      await eventually(countLockWaits, 2)
    })
    const imported = await importing
    site.close()
    const isBlocked = end === 'letPass'
    expect([imported.status, imported.body.error?.code]).toEqual(
      isBlocked ? [422, 'blocked_content'] : [201, undefined],
    )
    await eventually(() => publicStatuses(id), Array(4).fill(isBlocked ? 410 : 200))
    expect((await block(api.url)).status).toBe(isBlocked ? 410 : 200)
    await eventually(() => publicStatuses(id), [410, 410, 410, 410])
    if (!isBlocked) await eventually(() => publicStatuses(idIn(imported)), [410, 410, 410, 410])
    expect((await uploadTo(api.url, clip)).status).toBe(422)
    forget(id)
    report(`service killed while it blocks bytes, ${what}`, { import: imported.status })
  },
)

const countLockWaits = async () =>
  (await stage.query(`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`))
    .length

/** A clip with a lifetime of a week that visits extend, two days old. */
async function visitedClip(): Promise<string> {
  const id = await upload(newClip(), [
    ['expires_in', '7d'],
    ['sliding', 'true'],
  ])
  await stage.query(`update clips set expires_at = expires_at - interval '2 days' where id = $1`, [id])
  return id
}

test('a service killed before the write of a visit: the lifetime stays as it was, and the next visit extends it', async () => {
  const id = await visitedClip()
  const end = await endOf(id)
  const visitor = await stage.serve(WITHOUT_WORKERS)
  const held = await holdChange(stage.url, { table: 'clips', on: 'update' })
  expect((await send('GET', `${visitor.url}/f/${id}.jpg`)).status).toBe(200)
  await held.hasBegun()
  visitor.child.kill('SIGKILL')
  await visitor.ended
  await held.undo()
  expect(await endOf(id)).toBe(end)
  expect(await statusOf(`/f/${id}.jpg`)).toBe(200)
  await eventually(async () => Math.round(((await endOf(id)) - end) / DAY_MS), 2)
  report('service killed before the write of a visit', { visits: 2 })
}, 120_000)

test('the write of a visit that outlives its killed service does not shorten the lifetime its owner was answered', async () => {
  const id = await visitedClip()
  const visitor = await stage.serve(WITHOUT_WORKERS)
  const held = await holdChange(stage.url, commitOfClip)
  const changing = call('PATCH', `${api.url}/media/${id}`, { expires_in: '90d' })
  await held.hasBegun()
  expect((await send('GET', `${visitor.url}/f/${id}.jpg`)).status).toBe(200)
  // The change waits for the test, and the visit for the change.
  await eventually(countLockWaits, 2)
  visitor.child.kill('SIGKILL')
  await visitor.ended
  await held.letPass()
  const { status, body } = await changing
  expect(status).toBe(200)
  await eventually(countLockWaits, 0)
  const end = Date.parse(body.success.expires_at)
  expect(Math.round((end - Date.now()) / DAY_MS)).toBe(90)
  expect(await endOf(id)).toBe(end)
  report('visit that outlives its service', { 'lifetime, days': 90 })
}, 120_000)

test('after all of it every clip that is public has its files, and nothing else is left', async () => {
  // Sources are deleted in one round, their files in the next.
  await tidyUpLater(stage, LATER_MS)
  report('all', await expectNothingLost(stage, api.url, tally, 2 * LATER_MS))
}, 120_000)
