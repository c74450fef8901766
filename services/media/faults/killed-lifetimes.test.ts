// Housekeeping killed at each step of the deletion of expired clips. Nothing expired is reachable, and clips that share
// their files keep them. The next round completes the step, and nothing else stays.

import { type Receiver, startReceiver } from '@services/common/testing/http/receiver'
import { openFaultReport } from '@services/common/testing/run/fault-report'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withComment } from '../test/gif-bytes.ts'
import { type FormFields, idIn, send } from '../test/service.ts'
import type { ServiceProcess } from '../test/service-process.ts'
import { holdChange, type Step } from './held-change.ts'
import {
  expectNothingLost,
  hasFiles,
  LATER_MS,
  newClip,
  newTally,
  openStage,
  type Stage,
  stop,
  TOKEN,
  tell,
  tidyUpLater,
  uploadTo,
} from './stage.ts'

const report = openFaultReport()

let stage: Stage
let api: ServiceProcess
let receiver: Receiver
const tally = newTally()

beforeAll(async () => {
  ;[stage, receiver] = await Promise.all([openStage(), startReceiver()])
  api = await stage.serve({ MEDIA_WORKERS_ENABLED: 'false' })
  const worker = stage.startWorker()
  const webhook = await send('POST', `${api.url}/webhooks`, {
    body: JSON.stringify({ url: receiver.url, events: ['media.deleted'] }),
    headers: { token: TOKEN, 'content-type': 'application/json' },
  })
  expect(webhook.status).toBe(201)
  for (const [what] of sweeps) prepared.set(what, await prepare())
  await stop(worker)
})
afterAll(async () => {
  receiver.close()
  await stage.end()
})

interface Prepared {
  /** Bytes of a clip that expires and shares no file. */
  alone: Buffer
  /** Clips that expire; the second shares its files with `kept`. */
  expiring: string[]
  kept: string
}

async function prepare(): Promise<Prepared> {
  const [alone, shared] = [newClip(), newClip()]
  const lifetime: FormFields = [['expires_in', '1h']]
  const expiring = [
    idIn(await uploadTo(api.url, alone, {}, lifetime)),
    idIn(await uploadTo(api.url, shared, {}, lifetime)),
  ]
  const answer = await uploadTo(api.url, withComment(shared, 'again'))
  expect(await tell(tally, async () => answer)).toBe(201)
  const kept = idIn(answer)
  const [{ files }] = await stage.query(
    `select count(*)::int as files from (select sha256, kind from renditions join clips using (source_id)
       where clips.id = any ($1) group by 1, 2 having count(*) = 2) shared`,
    [[expiring[1], kept]],
  )
  expect(files).toBe(4)
  return { alone, expiring, kept }
}

/**
 * Steps of a deletion, the rounds of housekeeping before it, and the end of the transaction. The clip is deleted in the
 * first round, its files in the third.
 */
const sweeps: [what: string, hold: Step, roundsBefore: 0 | 1 | 2, end: 'undo' | 'letPass'][] = [
  ['the row of a clip is a tombstone', { table: 'clips', on: 'update', when: 'new.deleted_at is not null' }, 0, 'undo'],
  ['its source is detached', { table: 'sources', on: 'update', when: 'new.clip_count < old.clip_count' }, 0, 'undo'],
  ['its event and its tombstone are to be committed', { table: 'clips', on: 'update', at: 'commit' }, 0, 'undo'],
  ['the rows of its files are deleted', { table: 'renditions', on: 'delete' }, 1, 'undo'],
  ['their references are dropped', { table: 'blobs', on: 'update' }, 1, 'undo'],
  ['the deletion of its source is to be committed', { table: 'sources', on: 'delete', at: 'commit' }, 1, 'undo'],
  ['the row of a stored file is deleted, and the file is not', { table: 'blobs', on: 'delete' }, 2, 'undo'],
  ['a stored file is deleted, and its row not yet for good', { table: 'blobs', on: 'delete', at: 'commit' }, 2, 'undo'],
  ['both are deleted, and it does not know', { table: 'blobs', on: 'delete', at: 'commit' }, 2, 'letPass'],
]
const prepared = new Map<string, Prepared>()

/** More time passes than the grace period of sources and files. */
async function letGracePass() {
  for (const table of ['sources', 'blobs']) {
    await stage.query(`update ${table} set unreferenced_at = unreferenced_at - interval '11 minutes'`)
  }
}

const statusesOf = (ids: string[]) =>
  Promise.all(
    ids
      .flatMap((id) => [`/gif/${id}`, `/embed/${id}`, `/oembed/${id}`, `/f/${id}.mp4`, `/f/${id}/w160.jpg`])
      .map(async (path) => (await send('GET', api.url + path)).status),
  )

test.for(sweeps)(
  'housekeeping killed when %s: the clips stay gone, another keeps the shared files, and the next round repeats the step',
  { timeout: 120_000 },
  async ([what, hold, roundsBefore, end]) => {
    const { alone, expiring, kept } = prepared.get(what) as Prepared
    await stage.query(`update clips set expires_at = now() - interval '1 second' where id = any ($1)`, [expiring])
    for (let round = 0; round < roundsBefore; round++) {
      await tidyUpLater(stage, 0)
      await letGracePass()
    }
    const held = await holdChange(stage.url, hold)
    const worker = stage.startWorker()
    await held.hasBegun()
    worker.child.kill('SIGKILL')
    await worker.ended
    await held[end]()
    expect(new Set(await statusesOf(expiring))).toEqual(new Set([410]))
    expect(await hasFiles(api.url, kept)).toBe(true)
    // The same bytes come again, whatever is left of them.
    if (roundsBefore === 2)
      expect(await tell(tally, () => uploadTo(api.url, alone, { prefer: 'respond-async' }))).toBe(201)

    await tidyUpLater(stage, 0)
    expect(new Set(await statusesOf(expiring))).toEqual(new Set([410]))
    expect(await hasFiles(api.url, kept)).toBe(true)
    const events = await stage.query(
      `select payload -> 'data' ->> 'reason' as reason from webhook_deliveries
         where type = 'media.deleted' and payload -> 'data' ->> 'id' = any ($1)`,
      [expiring],
    )
    expect(events).toEqual([{ reason: 'expired' }, { reason: 'expired' }])
    report(`housekeeping killed when ${what}`, { 'clips expired': expiring.length, 'events for each': 1 })
  },
)

test('after all of it the clips that do not expire have their files, and nothing else is left', async () => {
  stage.startWorker()
  // Clips are deleted in one round, their sources in the next, their files in the third.
  await tidyUpLater(stage, 0)
  await tidyUpLater(stage, LATER_MS)
  report('all', await expectNothingLost(stage, api.url, tally, 2 * LATER_MS))
  expect(await stage.query('select from clips where source_id is not null')).toHaveLength(tally.accepted.length)
}, 120_000)
