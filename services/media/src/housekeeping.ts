import { dropReference, inLockOrder, listUnreferencedBlobs } from './blobs/blobs.store.ts'
import { deleteIfUnreferenced } from './blobs/keep-files.ts'
import { deleteSource, listUnreferencedSources, lockUnreferencedSource } from './clips/sources.store.ts'
import type { Deps } from './deps.ts'
import { deleteExpiredLimits } from './http/rate-limits.store.ts'

const EVERY_MS = 300_000

/** Nothing is deleted younger than this: a download that has begun ends, and the same bytes sent again are still there. */
const KEEP_UNREFERENCED_MS = 600_000

/** So many at a time, so that one round of a large clean-up does not hold anything up. */
const BATCH = 500

type HousekeepingDeps = Pick<Deps, 'db' | 'blobs' | 'work' | 'now' | 'log'>

/** Deletes what nothing refers to any more; replicas may run it at once, each deletes what the others left. */
export function startHousekeeping(deps: HousekeepingDeps): () => void {
  const timer = setInterval(() => {
    cleanUp(deps).catch((err) => deps.log.warn({ err }, 'housekeeping failed, will be tried again'))
  }, EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}

export async function cleanUp(deps: HousekeepingDeps): Promise<void> {
  const before = new Date(deps.now().getTime() - KEEP_UNREFERENCED_MS)
  await forEach(deps, await listUnreferencedSources(deps.db, before, BATCH), (id) => removeSource(deps, id))
  await forEach(deps, await listUnreferencedBlobs(deps.db, before, BATCH), (name) => deleteIfUnreferenced(deps, name))
  while ((await deleteExpiredLimits(deps.db, deps.now(), BATCH)) === BATCH);
  await deps.work.sweep()
}

/** One that cannot be removed, say a file of another user, must not keep all that come after it for ever. */
async function forEach<Item>({ log }: HousekeepingDeps, items: Item[], remove: (item: Item) => Promise<unknown>) {
  for (const item of items) {
    await remove(item).catch((err) => log.warn({ err, item }, 'something could not be removed, will be tried again'))
  }
}

/** Looked at again under lock: somebody may have sent the same bytes since the list was made. */
async function removeSource({ db, now }: HousekeepingDeps, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    if (!(await lockUnreferencedSource(trx, id))) return
    for (const name of inLockOrder(await deleteSource(trx, id))) await dropReference(trx, name, now())
  })
}
