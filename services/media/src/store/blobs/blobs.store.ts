import { randomUUID } from 'node:crypto'
import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { BlobName } from './blob-storage.ts'

/** Age at which a deletion has ended, or its process was killed. The storage answers within 10 s (time-limits.ts). */
const DELETION_MS = 60_000

/**
 * Records a file before its put, and returns the generation for its reference; undefined while the file is being
 * deleted. Housekeeping deletes it later if it gets no reference.
 */
export async function registerBlob(
  db: Kysely<DB>,
  name: BlobName,
  bytes: number,
  now: Date,
): Promise<string | undefined> {
  const generation = randomUUID()
  const [count, ours] = [sql.ref('blobs.reference_count'), sql.ref('blobs.generation')]
  const deletingSince = sql.ref('blobs.deleting_since')
  const row = await db
    .insertInto('blobs')
    .values({ ...keyOf(name), bytes, unreferenced_at: now, generation })
    .onConflict((conflict) =>
      conflict
        .columns(['sha256', 'extension'])
        .doUpdateSet({
          unreferenced_at: sql`case when ${count} = 0 then ${now}::timestamptz end`,
          generation: sql`case when ${deletingSince} is null then ${ours} else ${generation}::uuid end`,
          deleting_since: null,
        })
        .where(isAtRest('blobs.deleting_since', now)),
    )
    .returning('generation')
    .executeTakeFirst()
  return row?.generation
}

/** Time before which a deletion that began has ended, or its process was killed. */
export const lastEndedDeletion = (now: Date): Date => new Date(now.getTime() - DELETION_MS)

const isAtRest = (deletingSince: string, now: Date) =>
  sql<boolean>`(${sql.ref(deletingSince)} is null or ${sql.ref(deletingSince)} < ${lastEndedDeletion(now)})`

/** Returns false when a deletion of the file, and perhaps of its row, began after it was registered. */
export async function addReference(trx: Transaction<DB>, name: BlobName, generation: string): Promise<boolean> {
  const referenced = await trx
    .updateTable('blobs')
    .set((column) => ({ reference_count: sql`${column.ref('reference_count')} + 1`, unreferenced_at: null }))
    .where(({ and }) => and({ ...keyOf(name), generation }))
    .where('deleting_since', 'is', null)
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

/** Deletion of files: until it ends, none of them can be registered or referenced. */
export interface Deletion {
  generation: string
  now: Date
}

/** Begins to delete those files that have no reference, and returns their names. */
export const beginDeletion = (trx: Transaction<DB>, names: readonly BlobName[], deletion: Deletion) =>
  begin(trx, names, deletion, sql`reference_count = 0`)

/** The same for a file that differs from its hash, and loses its references meanwhile. False if it is being deleted. */
export const beginRepair = async (trx: Transaction<DB>, name: BlobName, repair: Deletion): Promise<boolean> =>
  (await begin(trx, [name], repair, sql`true`)).length > 0

async function begin(
  trx: Transaction<DB>,
  names: readonly BlobName[],
  { generation, now }: Deletion,
  condition: RawBuilder<unknown>,
): Promise<BlobName[]> {
  await lockBlobs(trx, names)
  const { rows } = await sql<BlobName>`
    update ${sql.table('blobs')} blob set generation = ${generation}, deleting_since = ${now} from ${named(names)}
    where (blob.sha256, blob.extension) = (named.sha256, named.extension)
      and ${condition} and ${isAtRest('deleting_since', now)}
    returning encode(blob.sha256, 'hex') as sha256, blob.extension`.execute(trx)
  return rows
}

/** Ends a deletion: rows of the files that are `gone` go as well, and the others may be stored and referenced again. */
export async function endDeletion(
  trx: Transaction<DB>,
  names: readonly BlobName[],
  { generation, gone }: { generation: string; gone: readonly BlobName[] },
): Promise<void> {
  await lockBlobs(trx, names)
  await sql`delete from ${sql.table('blobs')} blob using ${named(gone)}
    where (blob.sha256, blob.extension) = (named.sha256, named.extension) and generation = ${generation}`.execute(trx)
  await sql`update ${sql.table('blobs')} blob set deleting_since = null from ${named(names)}
    where (blob.sha256, blob.extension) = (named.sha256, named.extension) and generation = ${generation}`.execute(trx)
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
