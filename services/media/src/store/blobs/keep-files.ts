import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type BlobName, type BlobStorage, blobFile, StorageUnavailable } from './blob-storage.ts'
import { addReference, beginDeletion, dropReference, endDeletion, inLockOrder, registerBlob } from './blobs.store.ts'

export interface BlobDeps {
  db: Kysely<DB>
  blobs: BlobStorage
  now: () => Date
}

export interface FileToKeep {
  name: BlobName
  path: string
  bytes: number
}

/** Losing twice to a deletion of the same content is a coincidence; a third time is a fault. */
const ATTEMPTS = 3

/** A deletion lasts as long as an answer of the storage may take (time-limits.ts), unless its process was killed. */
const DELETION_CHECKS = { number: 150, everyMs: 100 }

/** Decision of a transaction that keeps files. Housekeeping deletes a file without a reference. */
export interface Kept<T> {
  /** Names of files that were put. */
  references: readonly BlobName[]
  dropped?: readonly BlobName[]
  /** Work under contended locks, done last. */
  last?: () => Promise<void>
  result: T
}

/**
 * Puts the files and runs `commit` in a transaction that references them. No transaction waits for the storage, which
 * may hang. The order row, file, reference makes it safe beside deletions: a reference fails if one began since the
 * row. `commit` returns the names to reference, because its findings may make a file superfluous.
 */
export async function keepFiles<T>(
  deps: BlobDeps,
  files: readonly FileToKeep[],
  commit: (trx: Transaction<DB>) => Promise<Kept<T>>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const generations = new Map(await Promise.all(files.map((file) => putFile(deps, file))))
    try {
      return await deps.db.transaction().execute(async (trx) => {
        const kept = await commit(trx)
        await changeReferences(deps, trx, kept, generations)
        await kept.last?.()
        return kept.result
      })
    } catch (error) {
      if (!(error instanceof DeletedMeanwhile) || attempt === ATTEMPTS) throw error
    }
  }
}

async function putFile(deps: BlobDeps, { name, path, bytes }: FileToKeep): Promise<[file: string, generation: string]> {
  const generation = await register(deps, name, bytes)
  await deps.blobs.put(name, path)
  return [blobFile(name), generation]
}

async function register({ db, now }: BlobDeps, name: BlobName, bytes: number): Promise<string> {
  for (let checks = 0; checks < DELETION_CHECKS.number; checks++) {
    const generation = await registerBlob(db, name, bytes, now())
    if (generation) return generation
    await sleep(DELETION_CHECKS.everyMs)
  }
  throw new StorageUnavailable('a deletion of the same bytes does not end')
}

async function changeReferences(
  { now }: BlobDeps,
  trx: Transaction<DB>,
  { references, dropped = [] }: Kept<unknown>,
  generations: ReadonlyMap<string, string>,
): Promise<void> {
  const toAdd = new Set(references)
  for (const name of inLockOrder([...references, ...dropped])) {
    if (!toAdd.has(name)) {
      await dropReference(trx, name, now())
      continue
    }
    const generation = generations.get(blobFile(name))
    if (!generation) throw new Error('a reference to a file that was not put')
    if (!(await addReference(trx, name, generation))) throw new DeletedMeanwhile()
  }
}

class DeletedMeanwhile extends Error {
  override readonly name = 'DeletedMeanwhile'
}

/**
 * Deletes the files that have no reference, and returns their number. Their rows say so before the storage is asked:
 * see `keepFiles`. After a failure they can be stored again, which deletes nothing, as all requests have ended.
 */
export async function deleteUnreferenced({ db, blobs, now }: BlobDeps, names: readonly BlobName[]): Promise<number> {
  const generation = randomUUID()
  const taken = await db.transaction().execute((trx) => beginDeletion(trx, names, { generation, now: now() }))
  if (taken.length === 0) return 0
  const deletions = await Promise.allSettled(taken.map(blobs.delete))
  const gone = taken.filter((_, n) => deletions[n]?.status === 'fulfilled')
  await db.transaction().execute((trx) => endDeletion(trx, taken, { generation, gone }))
  for (const deletion of deletions) if (deletion.status === 'rejected') throw deletion.reason
  return taken.length
}

export const deleteIfUnreferenced = async (deps: BlobDeps, name: BlobName): Promise<boolean> =>
  (await deleteUnreferenced(deps, [name])) === 1
