// Clocks that jump ahead or differ: items with a lifetime expire, others stay, and running work continues. The
// service's clock is a value here. The lease of a worker uses PostgreSQL's clock, which is moved by changing stored
// times.
import { readFile } from 'node:fs/promises'
import { openFaultReport } from '@services/common/testing/run/fault-report'
import { afterEach, expect, test } from 'vitest'
import { checkBlobs, type Finding } from '../src/flows/check/check-blobs.ts'
import { cleanUp } from '../src/housekeeping.ts'
import { clip } from '../test/clips.ts'
import { type Answer, formOf, idIn, settingsOf, startTestService, type TestService } from '../test/service.ts'
import { eventually, startWorkerProcess } from '../test/service-process.ts'
import { slowFfmpeg } from './slow-ffmpeg.ts'
import { expectNothingLost, isWorking, newClip, newTally, openStage, tell, uploadTo } from './stage.ts'

const report = openFaultReport()
const later = { prefer: 'respond-async' }

const endings: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
}, 30_000)

const [MINUTE, HOUR, DAY] = [60, 3_600, 86_400]
const DEFAULT_RESUME_WITHIN = DAY
const ANONYMOUS_LIFETIME = 30 * DAY

/** Starts a service without a worker; a worker runs only during `work`. */
async function startWithoutWorker() {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_UPLOAD_AUTH: 'optional' })
  endings.push(() => service.close())
  const withWorker = async <T>(work: () => Promise<T>): Promise<T> => {
    const { child, ended } = startWorkerProcess(settingsOf(service.deps.config.database.url, service.blobsDir))
    try {
      return await work()
    } finally {
      child.kill('SIGTERM')
      await ended
    }
  }
  return { service, withWorker }
}

const fileStatuses = (service: TestService, id: string) =>
  Promise.all(['gif', 'jpg', 'mp4', 'webm'].map(async (kind) => (await service.get(`/f/${id}.${kind}`)).status))
const ALL_THERE = [200, 200, 200, 200]

async function findings({ deps }: TestService): Promise<Finding[]> {
  const found: Finding[] = []
  await checkBlobs(deps, { deep: true, fix: false, report: (finding) => void found.push(finding) })
  return found
}

/** Starts a resumable upload and sends this many bytes. */
async function beginUpload(service: TestService, bytes: number): Promise<() => Promise<number>> {
  const headers = { token: service.token, 'tus-resumable': '1.0.0' }
  const begun = await service.call('POST', '/tus', { headers: { ...headers, 'upload-length': '1000' } })
  const address = begun.headers.get('location') as string
  if (bytes > 0) {
    const piece = { 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' }
    await service.call('PATCH', address, { headers: { ...headers, ...piece }, body: new Uint8Array(bytes) })
  }
  return async () => (await service.call('HEAD', address, { headers })).status
}

test.for([
  ['an hour and a minute', HOUR + MINUTE],
  ['a day and a minute', DAY + MINUTE],
  ['a year', 365 * DAY],
] as const)(
  'a clock that jumps ahead by %s expires everything with a lifetime, and no clip',
  { timeout: 120_000 },
  async ([jump, seconds]) => {
    const { service, withWorker } = await startWithoutWorker()
    const { deps, clock } = service
    const bytes = newClip()
    const key = { 'idempotency-key': 'a key' }
    const idOf = async (answer: Promise<Answer>) => {
      const { status, headers } = await answer
      expect([status, headers.get('x-media-state')]).toEqual([201, 'ready'])
      return idIn(await answer)
    }
    const [kept, ownerless, deleted] = await withWorker(() =>
      Promise.all([
        idOf(service.upload(bytes, [], key)),
        idOf(formOf(newClip()).then((body) => service.call('POST', '/media/upload', { body }))),
        idOf(service.upload(newClip())),
      ]),
    )
    await service.call('DELETE', `/media/${deleted}`, { headers: { token: service.token } })
    const waiting = idIn(await service.upload(newClip(), [], later))
    const lent = await service.newToken({ expiresAt: new Date(clock.now().getTime() + 30 * MINUTE * 1000) })
    const [begun, empty] = [await beginUpload(service, 100), await beginUpload(service, 0)]

    clock.advance({ seconds })
    await Promise.all([cleanUp(deps), cleanUp(deps)])
    expect(await fileStatuses(service, kept)).toEqual(ALL_THERE)
    const isOwnerlessOver = seconds > ANONYMOUS_LIFETIME
    expect(await fileStatuses(service, ownerless)).toEqual(isOwnerlessOver ? [410, 410, 410, 410] : ALL_THERE)
    expect(await fileStatuses(service, waiting)).toEqual([202, 202, 202, 202])
    expect((await service.get('/media', { token: lent.token })).status).toBe(401)
    expect(await begun()).toBe(seconds > DEFAULT_RESUME_WITHIN ? 404 : 200)
    expect(await empty()).toBe(404)
    const again = await service.upload(bytes, [], key)
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, seconds > DAY ? null : 'true'])
    expect(idIn(again) === kept).toBe(seconds < DAY)

    await service.startWorker()
    await eventually(() => fileStatuses(service, waiting), ALL_THERE, 10_000)
    // The clip, then its original, then its files: ten minutes each.
    for (let round = 0; round < 2; round++) {
      clock.advance({ seconds: 11 * MINUTE })
      await cleanUp(deps)
    }
    const stored = (await service.listFiles()).filter((path) => /^[0-9a-f]{2}\//.test(path))
    const there = await Promise.all([kept, waiting].map((id) => fileStatuses(service, id)))
    const { rows } = await deps.pool.query('select distinct sha256, kind from renditions')
    report(`clock ahead by ${jump}`, {
      lost: there.filter((statuses) => statuses.some((status) => status !== 200)).length,
      stuck: (await deps.pool.query(`select from sources where state <> 'ready'`)).rowCount ?? 0,
      'orphan files': stored.length - rows.length,
    })
    expect(there).toEqual([ALL_THERE, ALL_THERE])
    expect(stored).toHaveLength(rows.length)
    expect((await service.countRows()).sources).toBe(isOwnerlessOver ? 2 : 3)
    expect(await findings(service)).toEqual([])
  },
)

test('after a clock jump expires a lease another worker takes the clip over and makes it once', async () => {
  const stage = await openStage()
  endings.push(() => stage.end())
  const api = await stage.serve({ MEDIA_WORKERS_ENABLED: 'false' })
  const slow = { MEDIA_FFMPEG_PATH: await slowFfmpeg() }
  await Promise.all([stage.startWorker(slow), stage.startWorker(slow)].map(isWorking))
  const tally = newTally()
  const path = await clip('long-sound.mp4')
  expect(await tell(tally, async () => uploadTo(api.url, await readFile(path), later))).toBe(201)
  const tries = async () =>
    (await stage.query(`select state, retry_count from media_queue.job where name = 'transcode'`))[0]
  await eventually(async () => (await stage.temporary()).length > 1, true, 10_000)
  await stage.query(
    `update media_queue.job set started_on = started_on - interval '1 day', heartbeat_on = heartbeat_on - interval '1 day'
     where name = 'transcode' and state = 'active'`,
  )
  await eventually(async () => (await tries())?.retry_count, 1, 20_000)
  report('a clip whose worker seems dead', await expectNothingLost(stage, api.url, tally))
  expect(await stage.stored()).toHaveLength(4)
}, 120_000)

test('machines whose clocks are hours apart damage no clip of each other', async () => {
  const stage = await openStage({ MEDIA_WORKERS_ENABLED: 'false' })
  endings.push(() => stage.end())
  const ahead = `--import data:text/javascript,${encodeURIComponent(AHEAD_BY_A_FEW_HOURS)}`
  const [api, other] = await Promise.all([stage.serve(), stage.serve({ NODE_OPTIONS: ahead })])
  await isWorking(stage.startWorker({ NODE_OPTIONS: ahead }))
  const tally = newTally()
  const bases = [api?.url, other?.url] as string[]
  // The worker's first housekeeping runs ten seconds after its start.
  const until = Date.now() + 12_000
  while (Date.now() < until) {
    const statuses = await Promise.all(bases.map((base) => tell(tally, () => uploadTo(base, newClip()))))
    expect(statuses).toEqual([201, 201])
  }
  // An original is deleted ten minutes after the time that the worker recorded.
  report('clocks three hours apart', await expectNothingLost(stage, bases[0] as string, tally, 4 * 3_600_000))
}, 120_000)

const AHEAD_BY_A_FEW_HOURS = `
const RealDate = Date
const ahead = 3 * 3600 * 1000
globalThis.Date = class Date extends RealDate {
  constructor(...args) { args.length === 0 ? super(RealDate.now() + ahead) : super(...args) }
  static now() { return RealDate.now() + ahead }
}`
