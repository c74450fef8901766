import { dropReference, inLockOrder, listUnreferencedBlobs } from './blobs/blobs.store.ts'
import { deleteIfUnreferenced } from './blobs/keep-files.ts'
import { deleteSource, listProcessing, listUnreferencedSources, lockUnreferencedSource } from './clips/sources.store.ts'
import type { Deps } from './deps.ts'
import { deleteExpiredLimits } from './http/rate-limits.store.ts'
import { rescueSource } from './jobs/rescue-source.ts'

const EVERY_MS = 300_000

/** Nothing is deleted younger than this: a download that has begun ends, and the same bytes sent again are still there. */
const KEEP_UNREFERENCED_MS = 600_000

/** Most clips are made by then, and what is made needs no second look. */
const LOST_AFTER_MS = 60_000

/** So many at a time, so that one round of a large clean-up does not hold anything up. */
const BATCH = 500

type HousekeepingDeps = Pick<Deps, 'db' | 'blobs' | 'queue' | 'resultsChannel' | 'work' | 'now' | 'log'>

/**
 * Rescues clips that lost their jobs and deletes what nothing refers to any more; replicas may run it at once, each does
 * what the others left.
 */
export function startHousekeeping(deps: HousekeepingDeps): () => void {
  const timer = setInterval(() => {
    cleanUp(deps).catch((err) => deps.log.warn({ err }, 'housekeeping failed, will be tried again'))
  }, EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}

export async function cleanUp(deps: HousekeepingDeps): Promise<void> {
  const ago = (ms: number) => new Date(deps.now().getTime() - ms)
  await forEach(deps, await listProcessing(deps.db, ago(LOST_AFTER_MS), BATCH), (id) => rescueSource(deps, id))
  const before = ago(KEEP_UNREFERENCED_MS)
  await forEach(deps, await listUnreferencedSources(deps.db, before, BATCH), (id) => removeSource(deps, id))
  await forEach(deps, await listUnreferencedBlobs(deps.db, before, BATCH), (name) => deleteIfUnreferenced(deps, name))
  while ((await deleteExpiredLimits(deps.db, deps.now(), BATCH)) === BATCH);
  await deps.work.sweep()
}

/** One that fails, say a file of another user that cannot be removed, must not keep all that come after it for ever. */
async function forEach<Item>({ log }: HousekeepingDeps, items: Item[], work: (item: Item) => Promise<unknown>) {
  for (const item of items) {
    await work(item).catch((err) => log.warn({ err, item }, 'something could not be tidied up, will be tried again'))
  }
}

/** Looked at again under lock: somebody may have sent the same bytes since the list was made. */
async function removeSource({ db, now }: HousekeepingDeps, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    if (!(await lockUnreferencedSource(trx, id))) return
    for (const name of inLockOrder(await deleteSource(trx, id))) await dropReference(trx, name, now())
  })
}
