import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../db/tables.ts'
import type { BlobName, BlobStorage } from './blob-storage.ts'
import { addReference, registerBlob, takeUnreferencedBlob } from './blobs.store.ts'

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

/** Losing twice to a deletion of the very same content is a coincidence; more is a fault. */
const TRIES = 3

/**
 * Puts the files and runs `commit` in a transaction that refers to them all. Order is what makes it safe beside
 * deletions: row, file, reference; whoever deletes holds the row until the file is gone. `commit` returns the names to
 * refer to, because what it finds may make a file superfluous; those are housekeeping's.
 */
export async function keepFiles<T>(
  deps: BlobDeps,
  files: readonly FileToKeep[],
  commit: (trx: Transaction<DB>) => Promise<{ references: readonly BlobName[]; result: T }>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    await Promise.all(files.map((file) => putFile(deps, file)))
    try {
      return await deps.db.transaction().execute(async (trx) => {
        const { references, result } = await commit(trx)
        for (const name of references.toSorted(byName)) {
          if (!(await addReference(trx, name))) throw new DeletedMeanwhile()
        }
        return result
      })
    } catch (error) {
      if (!(error instanceof DeletedMeanwhile) || attempt === TRIES) throw error
    }
  }
}

async function putFile({ db, blobs, now }: BlobDeps, { name, path, bytes }: FileToKeep): Promise<void> {
  await registerBlob(db, name, bytes, now())
  await blobs.put(name, path)
}

class DeletedMeanwhile extends Error {
  override readonly name = 'DeletedMeanwhile'
}

/** Deletes the file if nothing refers to it. The file goes while the row is locked: see `keepFiles`. */
export async function deleteIfUnreferenced({ db, blobs }: Omit<BlobDeps, 'now'>, name: BlobName): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const isTaken = await takeUnreferencedBlob(trx, name)
    if (isTaken) await blobs.delete(name)
    return isTaken
  })
}

/** Locks are taken in one order everywhere, so that two transactions never wait for each other. */
const byName = (a: BlobName, b: BlobName) => (`${a.sha256}.${a.extension}` < `${b.sha256}.${b.extension}` ? -1 : 1)
