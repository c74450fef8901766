// PostgreSQL dies, starts late, or fails during a stop of the service: the cost is bounded, and nothing acknowledged is
// lost.
import { setTimeout as sleep } from 'node:timers/promises'
import { openFaultReport } from '@services/common/testing/run/fault-report'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openUpload } from '../test/clients/slow-upload.ts'
import { eventually } from '../test/service-process.ts'
import {
  expectNothingLost,
  isWorking,
  newClip,
  newTally,
  openStage,
  type Stage,
  startLoad,
  startSite,
  TOKEN,
  tell,
  uploadTo,
} from './stage.ts'

const report = openFaultReport()
let stage: Stage
let site: Awaited<ReturnType<typeof startSite>>

beforeEach(async () => {
  ;[stage, site] = await Promise.all([openStage(), startSite()])
})
afterEach(async () => {
  site.close()
  await stage.end()
}, 30_000)

const API = { MEDIA_WORKERS_ENABLED: 'false' }

test('PostgreSQL killed twice under uploads and imports fails requests for a moment and loses nothing acknowledged', async () => {
  const [api] = await Promise.all([stage.serve(API)])
  const worker = stage.startWorker()
  await isWorking(worker)
  const { tally, stop } = startLoad(api.url, site.url)
  await eventually(() => tally.accepted.length > 5, true, 30_000)
  for (let kill = 0; kill < 2; kill++) {
    const before = tally.accepted.length
    stage.killPostgres()
    await sleep(1_500)
    await stage.startPostgres()
    await eventually(() => tally.accepted.length > before + 10, true, 40_000)
  }
  await stop()
  expect([api.child.exitCode, worker.child.exitCode]).toEqual([null, null])
  report('PostgreSQL killed twice', await expectNothingLost(stage, api.url, tally))
  expect(tally.statuses[503]).toBeGreaterThan(0)
}, 120_000)

test('two APIs and a worker that start before their PostgreSQL wait for it, migrate at once, and serve', async () => {
  await stage.stopPostgres()
  const starting = [stage.serve(API), stage.serve(API)]
  const worker = stage.startWorker()
  await eventually(() => worker.output().includes('database not reachable yet'), true, 60_000)
  await sleep(1_000)
  await stage.startPostgres()
  const [one, two] = await Promise.all(starting)
  const tally = newTally()
  const bases = [one, two].map((api) => api?.url as string)
  await Promise.all(bases.flatMap((base) => [1, 2, 3].map(() => tell(tally, () => uploadTo(base, newClip())))))
  expect(tally.statuses).toEqual({ 201: 6 })
  report('PostgreSQL later than all', await expectNothingLost(stage, bases[0] as string, tally))
}, 120_000)

test.for<[string, (stage: Stage) => Promise<() => void>]>([
  ['is killed in that moment', async ({ killPostgres }) => nothingToMend(killPostgres())],
  ['hangs', ({ hangPostgres }) => hangPostgres()],
])(
  'a service and a worker exit cleanly when they are stopped while PostgreSQL %s',
  { timeout: 120_000 },
  async ([what, fail]) => {
    const [api, worker] = [await stage.serve(), stage.startWorker()]
    await isWorking(worker)
    // Both are busy.
    const upload = openUpload(api.url, { token: TOKEN })
    await upload.write(Buffer.alloc(200_000))
    await eventually(async () => (await stage.temporary()).length, 1)
    const mend = await fail(stage)
    const startedAt = performance.now()
    for (const { child } of [api, worker]) child.kill('SIGTERM')
    const codes = await Promise.all([api.ended, worker.ended])
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    mend()
    report(`stopped while PostgreSQL ${what}`, {
      'until both ended, s': seconds,
      'orphan files': (await stage.temporary()).length,
    })
    expect(codes).toEqual([0, 0])
    expect(await stage.temporary()).toEqual([])
  },
)

const nothingToMend = (_killed: unknown) => () => {}
