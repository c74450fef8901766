// Deletes and rescues every five minutes: bytes that no clip uses, expired clips, old deliveries, lost jobs. A failed
// item is retried in the next round and never stops the others. Tests: test/housekeeping.test.ts.
import { batchesOf } from '@services/common/concurrency/chunks'
import { repeatBatch } from '@services/common/housekeeping/delete-in-batches'
import { type Kinds, type Runs, runRound, startRounds } from '@services/common/housekeeping/rounds'
import { countStorage } from './core/administration/storage.ts'
import { deleteEntriesBefore } from './core/audit/audit.store.ts'
import { deleteExpiredLinks } from './core/clip-access/links.store.ts'
import { deleteOutcomesBefore, KEY_LIFETIME_MS } from './core/idempotency/idempotency.store.ts'
import { hardDeleteClip, softDeleteClip, softDeleteExpired } from './core/lifecycle/delete-clip.ts'
import { monthOf } from './core/reports/reporter.ts'
import { deleteKeysBefore, deleteReportsBefore } from './core/reports/reports.store.ts'
import { deleteExpiredSessions } from './core/tokens/browser-sessions.store.ts'
import { dayOf, deleteDaysBefore } from './core/tokens/usage.store.ts'
import { deleteVariants, type VariantKey } from './core/variants/variants.store.ts'
import { deleteViewsBefore } from './core/views/views.store.ts'
import { rescueDeliveries } from './core/webhooks/deliver-webhook.ts'
import { deleteDeliveriesBefore } from './core/webhooks/deliveries.store.ts'
import type { EmitDeps } from './core/webhooks/emit-event.ts'
import type { Deps } from './deps.ts'
import { deleteOldChanges } from './flows/clips/live/changes.store.ts'
import { sweepUploads } from './flows/uploads/resumable-uploads.ts'
import {
  deleteExpiredLimits,
  deleteSources,
  deleteTombstones,
  listExpiredAnonymousClips,
  listExpiredClips,
  listFailedClips,
  listFailedVariants,
  listOverdueVariants,
  listProcessing,
  listUnreferencedBlobs,
  listUnreferencedSources,
  listUnusedVariants,
} from './housekeeping.store.ts'
import { rescuePosters } from './make/jobs/add-poster.ts'
import { rescueSource } from './make/jobs/rescue-source.ts'
import { rescueVariant } from './make/jobs/rescue-variant.ts'
import { parseBlobFile } from './store/blobs/blob-storage.ts'
import { dropReferences } from './store/blobs/blobs.store.ts'
import { deleteUnreferenced } from './store/blobs/keep-files.ts'

/** Grace period of files: downloads under way can end, and the same bytes uploaded again are still there. */
const KEEP_UNREFERENCED_MS = 600_000

/** A client that was answered before its clip failed has a week to read the reason; many never come back. */
const KEEP_FAILED_MS = 7 * 86_400_000

/** Usage of tokens: a year and a month, to compare a month with the same one a year earlier. */
const KEEP_DAYS_MS = 396 * 86_400_000

/** Long enough for the months that a dispute about a decision takes. */
const KEEP_REPORTS_MS = 180 * 86_400_000

const KEEP_DELIVERIES_MS = 30 * 86_400_000

/** Variants that nothing requests cost their clip's quota. */
const KEEP_UNUSED_VARIANTS_MS = 30 * 86_400_000

/** Pause after which a failed variant is tried again. */
const KEEP_FAILED_VARIANTS_MS = 3_600_000

/** Age at which a processing source is checked for a lost job; most clips are ready by then. */
const LOST_AFTER_MS = 60_000

/** Items of one transaction: few enough that a request waits for their locks only a moment. */
const CHUNK = 200

type HousekeepingDeps = Pick<
  Deps,
  'config' | 'db' | 'blobs' | 'queue' | 'announcements' | 'work' | 'log' | 'timeLimits'
> &
  EmitDeps

/**
 * Rescues clips whose jobs were lost and deletes rows and files without references, soon after the start and then every
 * few minutes. Replicas may run it at once. The returned function stops it and waits for the step in hand.
 */
export function startHousekeeping(deps: HousekeepingDeps, clean: typeof cleanUp = cleanUp): () => Promise<void> {
  const { firstHousekeepingMs: firstMs, housekeepingEveryMs: everyMs } = deps.timeLimits
  const runs: Runs = {}
  return startRounds((stopping) => clean(deps, stopping, runs), { log: deps.log, firstMs, everyMs })
}

/** Runs one round; ends early when `stopping` aborts. */
export const cleanUp = (deps: HousekeepingDeps, stopping?: AbortSignal, runs: Runs = {}): Promise<void> =>
  runRound({ ...kindsOf(deps), ...leftovers(deps) }, roundOf(deps, stopping, runs))

/** Cleans up a process without workers: its work directory may be on a disk that no worker sees. */
export const sweepWorkDirectory: typeof cleanUp = (deps, stopping, runs = {}) => {
  const { uploads, work } = leftovers(deps)
  return runRound({ uploads, work }, roundOf(deps, stopping, runs))
}

const roundOf = ({ log, now, timeLimits }: HousekeepingDeps, stopping: AbortSignal | undefined, runs: Runs) => ({
  ...{ log, now, stopping, runs },
  everyMs: timeLimits.housekeepingEveryMs,
})

function kindsOf(deps: HousekeepingDeps): Kinds {
  const { db, log, now, config } = deps
  const ago = (ms: number) => new Date(now().getTime() - ms)
  const inTurn = (pages: AsyncGenerator<string[], void>, work: (ids: string[]) => Promise<unknown>, size = CHUNK) =>
    inChunks(pages, size, work, (err, item) => log.warn({ err, item }, 'housekeeping of an item failed, will retry'))
  return {
    'lost jobs': {
      begin: () => inTurn(listProcessing(db, ago(LOST_AFTER_MS)), ([id = '']) => rescueSource(deps, id), 1),
    },
    'failed clips': {
      begin: () => inTurn(listFailedClips(db, ago(KEEP_FAILED_MS)), ([id = '']) => hardDeleteClip(deps, id), 1),
    },
    'expired clips': {
      begin: () =>
        inTurn(listExpiredClips(db, now()), ([id = '']) => softDeleteClip(deps, id, { reason: 'expired' }), 1),
    },
    'expired clips without a token': {
      begin: () => inTurn(listExpiredAnonymousClips(db, now()), (ids) => softDeleteExpired(deps, ids)),
    },
    tombstones: { begin: () => deleteTombstones(db, ago(config.tombstonesKeepSeconds * 1000)) },
    'unused variants': {
      begin: () =>
        inTurn(listUnusedVariants(db, ago(KEEP_UNUSED_VARIANTS_MS)), (keys) => deleteUnusedVariants(deps, keys)),
    },
    'failed variants': {
      begin: () =>
        inTurn(listFailedVariants(db, ago(KEEP_FAILED_VARIANTS_MS)), (keys) => deleteFailedVariants(deps, keys)),
    },
    'lost variants': {
      begin: () =>
        inTurn(listOverdueVariants(db, ago(LOST_AFTER_MS)), ([key = '']) => rescueVariant(deps, toKey(key)), 1),
    },
    'lost posters': { begin: () => once(() => rescuePosters(deps, ago(LOST_AFTER_MS))) },
    sources: {
      begin: () =>
        inTurn(listUnreferencedSources(db, ago(KEEP_UNREFERENCED_MS)), (ids) => hardDeleteSources(deps, ids)),
    },
    files: {
      begin: () =>
        inTurn(listUnreferencedBlobs(db, ago(KEEP_UNREFERENCED_MS), ago(config.source.keepSeconds * 1000)), (names) =>
          deleteUnreferenced(deps, names.map(parseBlobFile)),
        ),
    },
    'counts of files': { begin: () => countStorage(deps) },
    'lost deliveries': { begin: () => repeatBatch((limit) => rescueDeliveries(deps, limit)) },
    limits: { begin: () => deleteExpiredLimits(db, now()) },
    'usage of tokens': { begin: () => deleteDaysBefore(db, dayOf(ago(KEEP_DAYS_MS))) },
    'sessions of browsers': { begin: () => deleteExpiredSessions(db, now()) },
    'days of views': { begin: () => deleteViewsBefore(db, dayOf(ago(config.views.keepSeconds * 1000))) },
    'changes of clips': { begin: () => deleteOldChanges(db) },
    'links to clips': { begin: () => deleteExpiredLinks(db, now()) },
    'outcomes of requests': { begin: () => deleteOutcomesBefore(db, ago(KEY_LIFETIME_MS)) },
    reports: { begin: () => deleteReportsBefore(db, ago(KEEP_REPORTS_MS)) },
    'keys of reporters': { begin: () => once(() => deleteKeysBefore(db, monthOf(now()))) },
    'audit entries': { begin: () => deleteEntriesBefore(db, ago(config.auditKeepSeconds * 1000)) },
    deliveries: { begin: () => deleteDeliveriesBefore(db, ago(KEEP_DELIVERIES_MS)) },
  }
}

/** Files that killed processes left. */
function leftovers(deps: HousekeepingDeps) {
  const sweep = (work: () => Promise<void>) => ({ begin: () => once(work) })
  return { uploads: sweep(() => sweepUploads(deps)), work: sweep(deps.work.sweep), puts: sweep(deps.blobs.sweep) }
}

async function* once(work: () => Promise<void>): AsyncGenerator<void, void> {
  yield await work()
}

/** Processes a batch; if it fails, retries item by item, so only the faulty ones remain. */
async function* inChunks(
  pages: AsyncGenerator<string[], void>,
  size: number,
  work: (items: string[]) => Promise<unknown>,
  recordFailure: (err: unknown, item: string) => void,
): AsyncGenerator<void, void> {
  for await (const page of pages) {
    for (const chunk of batchesOf(page, size)) {
      const isDone = await work(chunk).then(
        () => true,
        () => false,
      )
      yield
      if (isDone) continue
      for (const item of chunk) {
        await work([item]).catch((err) => recordFailure(err, item))
        yield
      }
    }
  }
}

const toKey = (id: string): VariantKey => {
  const [sourceId = '', name = ''] = id.split('/')
  return { sourceId, name }
}

async function deleteUnusedVariants({ db, now }: HousekeepingDeps, ids: readonly string[]): Promise<void> {
  const unusedBefore = new Date(now().getTime() - KEEP_UNUSED_VARIANTS_MS)
  await db.transaction().execute(async (trx) => {
    await dropReferences(trx, await deleteVariants(trx, ids.map(toKey), { unusedBefore }), now())
  })
}

/** They have no files. */
async function deleteFailedVariants({ db, now }: HousekeepingDeps, ids: readonly string[]): Promise<void> {
  await db.transaction().execute((trx) => deleteVariants(trx, ids.map(toKey), { unusedBefore: now(), state: 'failed' }))
}

/** Checks again under lock: the same bytes may have been uploaded since the list was read. */
async function hardDeleteSources({ db, now }: HousekeepingDeps, ids: readonly string[]): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await dropReferences(trx, await deleteSources(trx, ids), now())
  })
}
