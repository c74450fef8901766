// What happens to media when its database goes away without closing connections, or fails over and loses what was committed
// last: uploads, transcoding and webhooks go on. Two real nodes, and one address that leads to either.
import { setTimeout as sleep } from 'node:timers/promises'
import { openFaultReport } from '@services/common/testing/fault-report'
import { type PostgresPair, startPostgresPair } from '@services/common/testing/postgres-pair'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Receiver, startReceiver } from '../test/receiver.ts'
import { migrateDatabase, send } from '../test/service.ts'
import { eventually } from '../test/service-process.ts'
import { isWorking, newClip, openStage, type Stage, startLoad, startSite, TOKEN, uploadTo } from './stage.ts'

const TEST_WITHIN_MS = 240_000
/** Of silence, until all goes on. */
const BACK_WITHIN_MS = 25_000
/** Of a server that takes writes, until all goes on; making a clip on a busy machine comes on top. */
const WRITABLE_WITHIN_MS = 3_000
const CLIP_WITHIN_MS = 5_000

const report = openFaultReport()
let pair: PostgresPair
let stage: Stage
let site: Awaited<ReturnType<typeof startSite>>
let receiver: Receiver

beforeEach(async () => {
  ;[pair, site, receiver] = await Promise.all([
    startPostgresPair('media', migrateDatabase),
    startSite(),
    startReceiver(),
  ])
  stage = await openStage({ MEDIA_DATABASE_URL: pair.url, MEDIA_MIGRATE_ON_START: 'false' })
}, 120_000)
afterEach(async () => {
  site.close()
  await receiver.close()
  await stage.end()
  await pair.end()
}, 60_000)

async function startAll() {
  const api = await stage.serve({ MEDIA_WORKERS_ENABLED: 'false' })
  const worker = stage.startWorker()
  await isWorking(worker)
  const { status } = await send('POST', `${api.url}/webhooks`, {
    body: JSON.stringify({ url: receiver.url }),
    headers: { token: TOKEN, 'content-type': 'application/json' },
  })
  expect(status).toBe(201)
  return { api, worker, load: startLoad(api.url, site.url) }
}

/** Time in ms from `since` until a new clip is made and its webhook delivered. */
async function measureClip(base: string, since: number): Promise<{ clip: number; webhook: number }> {
  const after = () => Math.round(performance.now() - since)
  await eventually(async () => (await uploadTo(base, newClip()).catch(() => ({ status: 0 }))).status, 201)
  const clip = after()
  const delivered = receiver.received.length
  await eventually(() => receiver.received.length > delivered, true)
  return { clip, webhook: after() }
}

/** What became of the clips that were answered 201. */
async function fateOf(ids: string[], query: PostgresPair['onPrimary']) {
  const states = new Map(
    (await query('select clips.id, state from clips join sources on sources.id = clips.source_id')).map((row) => [
      row.id,
      row.state,
    ]),
  )
  const count = (state: string | undefined) => ids.filter((id) => states.get(id) === state).length
  return { ready: count('ready'), processing: count('processing'), failed: count('failed'), unknown: count(undefined) }
}

test(
  'silence on open connections is over within 25 s, for uploads, transcoding and webhooks, without a restart',
  async () => {
    const { api, worker, load } = await startAll()
    await eventually(() => load.tally.accepted.length > 5, true)
    const silentAt = performance.now()
    pair.silenceOpen()
    const back = await measureClip(api.url, silentAt)
    await sleep(Math.max(0, silentAt + BACK_WITHIN_MS - performance.now()))
    await load.stop()
    const settled = async () => (await fateOf(load.tally.accepted, pair.onPrimary)).processing
    await eventually(settled, 0)
    const fate = await fateOf(load.tally.accepted, pair.onPrimary)
    report('silence on open connections', {
      ...load.tally.statuses,
      'clip made after, ms': back.clip,
      'webhook after, ms': back.webhook,
      'longest answer, ms': Math.round(load.tally.longest),
      ...fate,
    })
    expect(fate).toMatchObject({ failed: 0, unknown: 0 })
    expect(back.webhook).toBeLessThan(BACK_WITHIN_MS)
    expect([api.child.exitCode, worker.child.exitCode]).toEqual([null, null])
  },
  TEST_WITHIN_MS,
)

test(
  'a failover that lost two seconds loses no clip whose row and files are there',
  async () => {
    const { api, load } = await startAll()
    await eventually(() => load.tally.accepted.length > 5, true)
    await pair.stopReplication()
    await sleep(2_000)
    pair.killPrimary()
    await load.stop()
    await pair.promote()
    pair.leadTo(pair.standby)
    const back = await measureClip(api.url, performance.now())
    const settled = async () => (await fateOf(load.tally.accepted, pair.onStandby)).processing
    await eventually(settled, 0)
    const { unknown: lost, ...fate } = await fateOf(load.tally.accepted, pair.onStandby)
    report('failover that lost two seconds', {
      ...load.tally.statuses,
      'clip made after promotion, ms': back.clip,
      'webhook after promotion, ms': back.webhook,
      ...fate,
      // Committed to a primary that told its standby nothing.
      'rows lost': lost,
    })
    expect(fate.failed).toBe(0)
    expect(fate.ready).toBeGreaterThan(0)
    expect(back.webhook).toBeLessThan(WRITABLE_WITHIN_MS + CLIP_WITHIN_MS)
  },
  TEST_WITHIN_MS,
)
