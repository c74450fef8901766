import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { BlobName, BlobStorage } from './blob-storage.ts'
import { addReference, dropReference, inLockOrder, registerBlob, takeUnreferencedBlobs } from './blobs.store.ts'

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

/** Decision of a transaction that keeps files. Housekeeping deletes a file without a reference. */
export interface Kept<T> {
  references: readonly BlobName[]
  dropped?: readonly BlobName[]
  /** Work under contended locks, done last, after the store has answered. */
  last?: () => Promise<void>
  result: T
}

/**
 * Puts the files and runs `commit` in a transaction that references them. The order row, file, reference makes it safe
 * beside deletions, which hold the row until the file is deleted. `commit` returns the names to reference, because its
 * findings may make a file superfluous.
 */
export async function keepFiles<T>(
  deps: BlobDeps,
  files: readonly FileToKeep[],
  commit: (trx: Transaction<DB>) => Promise<Kept<T>>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    await Promise.all(files.map((file) => putFile(deps, file)))
    try {
      return await deps.db.transaction().execute(async (trx) => {
        const kept = await commit(trx)
        await changeReferences(deps, trx, kept)
        await kept.last?.()
        return kept.result
      })
    } catch (error) {
      if (!(error instanceof DeletedMeanwhile) || attempt === ATTEMPTS) throw error
    }
  }
}

async function putFile({ db, blobs, now }: BlobDeps, { name, path, bytes }: FileToKeep): Promise<void> {
  await registerBlob(db, name, bytes, now())
  await blobs.put(name, path)
}

async function changeReferences(
  { blobs, now }: BlobDeps,
  trx: Transaction<DB>,
  { references, dropped = [] }: Kept<unknown>,
): Promise<void> {
  const toAdd = new Set(references)
  for (const name of inLockOrder([...references, ...dropped])) {
    if (!toAdd.has(name)) await dropReference(trx, name, now())
    else if (!(await addReference(trx, name))) throw new DeletedMeanwhile()
  }
  // A deletion whose COMMIT failed leaves a row without a file. Our locks exclude deletions by now.
  const found = await Promise.all(references.map(blobs.stat))
  if (found.includes(undefined)) throw new DeletedMeanwhile()
}

class DeletedMeanwhile extends Error {
  override readonly name = 'DeletedMeanwhile'
}

/** Deletes the files that have no reference, while their rows are locked: see `keepFiles`. Returns their number. */
export async function deleteUnreferenced(
  { db, blobs }: Omit<BlobDeps, 'now'>,
  names: readonly BlobName[],
): Promise<number> {
  return db.transaction().execute(async (trx) => {
    const taken = await takeUnreferencedBlobs(trx, names)
    const deletions = await Promise.allSettled(taken.map(blobs.delete))
    // All have ended: a file that is put again after the rollback is not deleted.
    for (const deletion of deletions) if (deletion.status === 'rejected') throw deletion.reason
    return taken.length
  })
}

export const deleteIfUnreferenced = async (deps: Omit<BlobDeps, 'now'>, name: BlobName): Promise<boolean> =>
  (await deleteUnreferenced(deps, [name])) === 1
