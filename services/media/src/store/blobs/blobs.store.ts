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

/** Drops a reference for each name, also of names that are repeated. */
export async function dropReferences(trx: Transaction<DB>, names: readonly BlobName[], now: Date): Promise<void> {
  await lockBlobs(trx, names)
  await sql`
    update ${sql.table('blobs')} blob set reference_count = reference_count - times,
      unreferenced_at = case when reference_count = times then ${now}::timestamptz end
    from (select sha256, extension, count(*)::integer as times from ${named(names)} group by 1, 2) dropped
    where (blob.sha256, blob.extension) = (dropped.sha256, dropped.extension)`.execute(trx)
}

/**
 * Deletes the rows that have no reference, and returns their names. Until the transaction ends, no other one can register or
 * reference these blobs.
 */
export async function takeUnreferencedBlobs(trx: Transaction<DB>, names: readonly BlobName[]): Promise<BlobName[]> {
  await lockBlobs(trx, names)
  const { rows } = await sql<BlobName>`
    delete from ${sql.table('blobs')} blob using ${named(names)}
    where (blob.sha256, blob.extension) = (named.sha256, named.extension) and reference_count = 0
    returning encode(blob.sha256, 'hex') as sha256, blob.extension`.execute(trx)
  return rows
}

/** Locks in the order of `inLockOrder`. */
const lockBlobs = (trx: Transaction<DB>, names: readonly BlobName[]) =>
  sql`select from ${sql.table('blobs')} where (sha256, extension) in (select * from ${named(names)})
    order by sha256, extension collate "C" for update`.execute(trx)

const named = (names: readonly BlobName[]) =>
  sql`(select decode(hash, 'hex') as sha256, extension from unnest(
    ${names.map(({ sha256 }) => sha256)}::text[], ${names.map(({ extension }) => extension)}::text[]) as given (hash, extension)) named`

/** The order in which every transaction locks several rows, so that no two deadlock. */
export const inLockOrder = <Name extends BlobName>(names: readonly Name[]): Name[] => names.toSorted(byName)

const byName = (a: BlobName, b: BlobName) => (`${a.sha256}.${a.extension}` < `${b.sha256}.${b.extension}` ? -1 : 1)

const keyOf = ({ sha256, extension }: BlobName) => ({ sha256: Buffer.from(sha256, 'hex'), extension })
