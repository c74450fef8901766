import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { BlobName } from './blob-storage.ts'

/** Records a file before its put. Housekeeping deletes it later if it gets no reference. */
export async function registerBlob(db: Kysely<DB>, name: BlobName, bytes: number, now: Date): Promise<void> {
  await db
    .insertInto('blobs')
    .values({ ...keyOf(name), bytes, unreferenced_at: now })
    .onConflict((conflict) =>
      conflict
        .columns(['sha256', 'extension'])
        .doUpdateSet({ unreferenced_at: now })
        .where('blobs.reference_count', '=', 0),
    )
    .execute()
}

/** Returns false when housekeeping deleted the row, and the file, since it was registered. */
export async function addReference(trx: Transaction<DB>, name: BlobName): Promise<boolean> {
  const referenced = await trx
    .updateTable('blobs')
    .set((column) => ({ reference_count: sql`${column.ref('reference_count')} + 1`, unreferenced_at: null }))
    .where(({ and }) => and(keyOf(name)))
    .returning('extension')
    .executeTakeFirst()
  return referenced !== undefined
}

export async function dropReference(trx: Transaction<DB>, name: BlobName, now: Date): Promise<void> {
  await trx
    .updateTable('blobs')
    .set({
      reference_count: sql`reference_count - 1`,
      unreferenced_at: sql`case when reference_count = 1 then ${now}::timestamptz end`,
    })
    .where(({ and }) => and(keyOf(name)))
    .execute()
}

/** Deletes the row if it has no reference. Until the transaction ends, no other one can register or reference the blob. */
export async function takeUnreferencedBlob(trx: Transaction<DB>, name: BlobName): Promise<boolean> {
  const taken = await trx
    .deleteFrom('blobs')
    .where(({ and }) => and(keyOf(name)))
    .where('reference_count', '=', 0)
    .returning('extension')
    .executeTakeFirst()
  return taken !== undefined
}

/** One page of the files without a reference since `before`, by name. */
export async function listUnreferencedBlobs(
  db: Kysely<DB>,
  { before, after, limit }: { before: Date; after: BlobName | undefined; limit: number },
): Promise<BlobName[]> {
  const last = after ? keyOf(after) : { sha256: Buffer.alloc(0), extension: '' }
  const rows = await db
    .selectFrom('blobs')
    .select(['sha256', 'extension'])
    .where('unreferenced_at', '<', before)
    .where((column) => column(column.refTuple('sha256', 'extension'), '>', column.tuple(last.sha256, last.extension)))
    .orderBy('sha256')
    .orderBy('extension')
    .limit(limit)
    .execute()
  return rows.map(({ sha256, extension }) => ({ sha256: sha256.toString('hex'), extension }))
}

/** The order in which every transaction locks several rows, so that no two deadlock. */
export const inLockOrder = <Name extends BlobName>(names: readonly Name[]): Name[] => names.toSorted(byName)

const byName = (a: BlobName, b: BlobName) => (`${a.sha256}.${a.extension}` < `${b.sha256}.${b.extension}` ? -1 : 1)

const keyOf = ({ sha256, extension }: BlobName) => ({ sha256: Buffer.from(sha256, 'hex'), extension })
