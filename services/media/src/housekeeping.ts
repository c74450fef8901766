// Deletes and rescues every ten minutes: bytes that no clip uses, expired clips, old deliveries, lost jobs. The one
// rule: a failed item is retried in the next round and never stops the others. Tests: test/housekeeping.test.ts. Next:
// store/blobs/, core/clips/.
import { dayOf, deleteDaysBefore } from './core/tokens/usage.store.ts'
import { rescueDeliveries } from './core/webhooks/deliver-webhook.ts'
import { deleteDeliveriesBefore } from './core/webhooks/deliveries.store.ts'
import type { EmitDeps } from './core/webhooks/emit-event.ts'
import { hardDeleteClip, softDeleteClip } from './delete-clip.ts'
import type { Deps } from './deps.ts'
import { sweepUploads } from './flows/uploads/resumable-uploads.ts'
import {
  deleteExpiredLimits,
  deleteSource,
  listExpiredClips,
  listFailedClips,
  listProcessing,
  listUnreferencedSources,
  lockUnreferencedSource,
} from './housekeeping.store.ts'
import { deleteOutcomesBefore } from './ingest/accept/idempotency.store.ts'
import { rescueSource } from './make/jobs/rescue-source.ts'
import { dropReference, inLockOrder, listUnreferencedBlobs } from './store/blobs/blobs.store.ts'
import { deleteIfUnreferenced } from './store/blobs/keep-files.ts'

/** Grace period of files: downloads under way can end, and the same bytes uploaded again are still there. */
const KEEP_UNREFERENCED_MS = 600_000

/** A client that was answered before its clip failed has a week to read the reason; many never come back. */
const KEEP_FAILED_MS = 7 * 86_400_000

/** Usage of tokens: a year and a month, to compare a month with the same one a year earlier. */
const KEEP_DAYS_MS = 396 * 86_400_000

/** Outcomes of requests with a key, which are replayed for one day. */
const KEEP_OUTCOMES_MS = 2 * 86_400_000

const KEEP_DELIVERIES_MS = 30 * 86_400_000

/** Age at which a processing source is checked for a lost job; most clips are ready by then. */
const LOST_AFTER_MS = 60_000

const BATCH = 500

type HousekeepingDeps = Pick<Deps, 'config' | 'db' | 'blobs' | 'queue' | 'announcements' | 'work' | 'log'> & EmitDeps

/**
 * Rescues clips whose jobs were lost and deletes rows and files without references, soon after the start and then every
 * few minutes. Replicas may run it at once. The returned function stops it and waits for the item in hand.
 */
export function startHousekeeping(
  deps: HousekeepingDeps & Pick<Deps, 'patience'>,
  clean: (deps: HousekeepingDeps, stopping: AbortSignal) => Promise<void> = cleanUp,
): () => Promise<void> {
  const { firstHousekeepingMs, housekeepingEveryMs } = deps.patience
  const stopping = new AbortController()
  let round = Promise.resolve()
  let timer = setTimeout(begin, firstHousekeepingMs).unref()
  function begin() {
    round = clean(deps, stopping.signal)
      .catch((err) => deps.log.warn({ err }, 'housekeeping failed, will retry'))
      .then(() => {
        if (!stopping.signal.aborted) timer = setTimeout(begin, housekeepingEveryMs).unref()
      })
  }
  return () => {
    stopping.abort()
    clearTimeout(timer)
    return round
  }
}

/** Runs one round; ends early when `stopping` aborts. */
export async function cleanUp(deps: HousekeepingDeps, stopping?: AbortSignal): Promise<void> {
  const { db, log } = deps
  const start = deps.now()
  const ago = (ms: number) => new Date(start.getTime() - ms)
  /** Goes on to the next page also after failures, so that items that cannot be deleted do not block the rest. */
  async function forEach<Item>(
    ms: number,
    list: (db: Deps['db'], page: { before: Date; after: Item | undefined; limit: number }) => Promise<Item[]>,
    work: (item: Item) => Promise<unknown>,
  ): Promise<void> {
    const listAfter = (after?: Item) => list(db, { before: ago(ms), after, limit: BATCH })
    for (let items = await listAfter(); items.length > 0; items = await listAfter(items.at(-1))) {
      for (const item of items) {
        if (stopping?.aborted) return
        await work(item).catch((err) => log.warn({ err, item }, 'housekeeping of an item failed, will retry'))
      }
    }
  }
  await forEach(LOST_AFTER_MS, listProcessing, (id) => rescueSource(deps, id))
  await forEach(KEEP_FAILED_MS, listFailedClips, (id) => hardDeleteClip(deps, id))
  await forEach(0, listExpiredClips, (id) => softDeleteClip(deps, id))
  await forEach(KEEP_UNREFERENCED_MS, listUnreferencedSources, (id) => hardDeleteSource(deps, id))
  await forEach(KEEP_UNREFERENCED_MS, listUnreferencedBlobs, (name) => deleteIfUnreferenced(deps, name))
  const batches = [
    () => rescueDeliveries(deps, BATCH),
    () => deleteExpiredLimits(db, start, BATCH),
    () => deleteDaysBefore(db, dayOf(ago(KEEP_DAYS_MS)), BATCH),
    () => deleteOutcomesBefore(db, ago(KEEP_OUTCOMES_MS), BATCH),
    () => deleteDeliveriesBefore(db, ago(KEEP_DELIVERIES_MS), BATCH),
  ]
  for (const batch of batches) while (!stopping?.aborted && (await batch()) === BATCH);
  if (stopping?.aborted) return
  await sweepWorkDirectory(deps)
  await sweepAll(log, [deps.blobs.sweep])
}

/** Cleans up a process without workers: its work directory may be on a disk that no worker sees. */
export const sweepWorkDirectory = (deps: HousekeepingDeps): Promise<void> =>
  sweepAll(deps.log, [() => sweepUploads(deps), deps.work.sweep])

async function sweepAll(log: Deps['log'], sweeps: (() => Promise<void>)[]): Promise<void> {
  for (const sweep of sweeps) {
    await sweep().catch((err) => log.warn({ err }, 'leftover files not removed, will retry'))
  }
}

/** Checks again under lock: the same bytes may have been uploaded since the list was read. */
async function hardDeleteSource({ db, now }: HousekeepingDeps, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    if (!(await lockUnreferencedSource(trx, id))) return
    for (const name of inLockOrder(await deleteSource(trx, id))) await dropReference(trx, name, now())
  })
}
