import { jsonb } from '@services/common/database/pool'
import { type Insertable, type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { DB, StorageResult } from '../../db/tables.ts'

export interface KindCount {
  /** Extension of the files; `source` for those that wait to be transcoded. */
  kind: string
  files: number
  bytes: number
}

type BlobKey = Pick<Selectable<DB['blobs']>, 'sha256' | 'extension'>

/** Counts the files of a page by kind; `last` is the key of its last one, undefined for an empty page. */
export async function countPage(
  db: Kysely<DB>,
  after: BlobKey | undefined,
  limit: number,
): Promise<{ counts: KindCount[]; rows: number; last: BlobKey | undefined }> {
  const { sha256 = Buffer.alloc(0), extension = '' } = after ?? {}
  const { rows } = await sql<KindCount & { last: string }>`
    with page as (
      select sha256, extension, bytes from ${sql.table('blobs')} where (sha256, extension) > (${sha256}, ${extension})
      order by sha256, extension limit ${limit}
    )
    select extension as kind, count(*) as files, sum(bytes)::bigint as bytes, max(encode(sha256, 'hex') || extension) as last
    from page group by extension`.execute(db)
  const last = rows
    .map((row) => row.last)
    .sort()
    .at(-1)
  return {
    counts: rows.map(({ kind, files, bytes }) => ({ kind, files, bytes })),
    rows: rows.reduce((sum, { files }) => sum + files, 0),
    last: last === undefined ? undefined : { sha256: Buffer.from(last.slice(0, 64), 'hex'), extension: last.slice(64) },
  }
}

export const readCounts = (db: Kysely<DB>) =>
  db.selectFrom('storage_counts').select(['kind', 'files', 'bytes', 'counted_at']).orderBy('kind').execute()

export async function replaceCounts(trx: Transaction<DB>, counts: readonly KindCount[], now: Date): Promise<void> {
  await trx.deleteFrom('storage_counts').execute()
  const rows = counts.map((count) => ({ ...count, counted_at: now }))
  if (rows.length > 0) await trx.insertInto('storage_counts').values(rows).execute()
}

export type StorageCheck = Selectable<DB['storage_checks']>

/** The check that runs, else the last one. */
export const findLastCheck = (db: Kysely<DB>): Promise<StorageCheck | undefined> =>
  db
    .selectFrom('storage_checks')
    .selectAll()
    .orderBy(sql`finished_at is null`, 'desc')
    .orderBy('begun_at', 'desc')
    .limit(1)
    .executeTakeFirst()

export const lockRunningCheck = (trx: Transaction<DB>): Promise<StorageCheck | undefined> =>
  trx.selectFrom('storage_checks').selectAll().where('finished_at', 'is', null).forUpdate().executeTakeFirst()

/** False while another check runs. */
export async function insertCheck(trx: Kysely<DB>, check: Insertable<DB['storage_checks']>): Promise<boolean> {
  const inserted = await trx
    .insertInto('storage_checks')
    .values(check)
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst()
  return inserted !== undefined
}

/** Notes the machine that runs a check. False for one that has ended. */
export async function setCheckWorker(db: Kysely<DB>, id: string, worker: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('storage_checks')
    .set({ worker })
    .where('id', '=', id)
    .where('finished_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Ends a check, and forgets the earlier ones. */
export async function finishCheck(
  db: Kysely<DB>,
  id: string,
  { result, error = null, now }: { result?: StorageResult; error?: string | null; now: Date },
): Promise<void> {
  await db
    .updateTable('storage_checks')
    .set({ finished_at: now, result: result ? jsonb(result) : null, error })
    .where('id', '=', id)
    .where('finished_at', 'is', null)
    .execute()
  await db.deleteFrom('storage_checks').where('id', '!=', id).where('finished_at', 'is not', null).execute()
}
