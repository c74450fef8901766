import { BATCH, deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import { deleteVariantsOf } from './core/variants/variants.store.ts'
import type { DB } from './db/tables.ts'
import type { BlobName } from './store/blobs/blob-storage.ts'

// States are literals: the planner matches a partial index with constants only, never with a parameter.

/** Sources that were added before and are still processing. */
export const listProcessing = (db: Kysely<DB>, before: Date) =>
  pages(db, before, {
    at: sql`created_at`,
    id: sql`id::text`,
    rows: sql`${sql.table('sources')} where state = 'processing'`,
  })

export const listFailedClips = (db: Kysely<DB>, before: Date) =>
  pages(db, before, {
    at: sql`finished_at`,
    id: sql`clip.id`,
    rows: sql`${sql.table('clips')} clip join ${sql.table('sources')} source on source.id = source_id
      where state = 'failed'`,
  })

const listExpired = (owner: RawBuilder<unknown>) => (db: Kysely<DB>, before: Date) =>
  pages(db, before, {
    at: sql`expires_at`,
    id: sql`id`,
    rows: sql`${sql.table('clips')} where expires_at is not null and deleted_at is null and ${owner}`,
  })

export const listExpiredClips = listExpired(sql`token_id is not null`)
export const listExpiredAnonymousClips = listExpired(sql`token_id is null`)

/** Sources without clips since `before`. */
export const listUnreferencedSources = (db: Kysely<DB>, before: Date) =>
  pages(db, before, {
    at: sql`unreferenced_at`,
    id: sql`id::text`,
    rows: sql`${sql.table('sources')} where unreferenced_at is not null and state <> 'processing'`,
  })

/**
 * Files without a reference since `before`, as `<sha256>.<extension>`; originals of sources that are still there since
 * `originalsBefore`.
 */
export const listUnreferencedBlobs = (db: Kysely<DB>, before: Date, originalsBefore: Date) =>
  pages(db, before, {
    at: sql`unreferenced_at`,
    id: sql`encode(sha256, 'hex') || '.' || extension`,
    rows: sql`${sql.table('blobs')} blob where unreferenced_at is not null and (extension <> 'source'
      or unreferenced_at < ${originalsBefore}
      or not (exists (select from ${sql.table('sources')} where sha256 = blob.sha256 and state <> 'failed')
        or exists (select from ${sql.table('sources')} where file_sha256 = blob.sha256 and state <> 'failed')))`,
  })

/** Variants that were not requested since `before`, as `<source>/<name>`. */
export const listUnusedVariants = (db: Kysely<DB>, before: Date) =>
  pages(db, before, { at: sql`used_at`, id: VARIANT_KEY, rows: sql`${sql.table('variants')} where state <> 'making'` })

/** Claims of variants from before. */
export const listOverdueVariants = (db: Kysely<DB>, before: Date) =>
  pages(db, before, {
    at: sql`claimed_at`,
    id: VARIANT_KEY,
    rows: sql`${sql.table('variants')} where state = 'making'`,
  })

export const listFailedVariants = (db: Kysely<DB>, before: Date) =>
  pages(db, before, {
    at: sql`claimed_at`,
    id: VARIANT_KEY,
    rows: sql`${sql.table('variants')} where state = 'failed'`,
  })

const VARIANT_KEY = sql`source_id::text || '/' || name`

/**
 * Yields ids in pages, in the order of an indexed time. A page begins after the last one even if its rows are still
 * there. Items that cannot be deleted then do not block the rest.
 */
async function* pages(
  db: Kysely<DB>,
  before: Date,
  { at, id, rows: candidates }: Record<'at' | 'id' | 'rows', RawBuilder<unknown>>,
): AsyncGenerator<string[], void> {
  for (let last: { id: string; at: string } | undefined; ; ) {
    const isNext = last ? sql`and ${at} >= ${last.at} and (${at}, ${id}) > (${last.at}, ${last.id})` : sql``
    const { rows } = await sql<{ id: string; at: string }>`
      select ${id} as id, ${at}::text as at from ${candidates} and ${at} < ${before} ${isNext}
      order by ${at}, ${id} limit ${BATCH}`.execute(db)
    last = rows.at(-1)
    if (!last) return
    yield rows.map((row) => row.id)
  }
}

/**
 * Deletes the sources that still have no clip; from here on no clip can join them. Returns the names of their files;
 * the caller drops the references.
 */
export async function deleteSources(trx: Transaction<DB>, ids: readonly string[]): Promise<BlobName[]> {
  const locked = await trx
    .selectFrom('sources')
    .select('id')
    .where(sql<boolean>`id = any (${ids}::uuid[])`)
    .where('clip_count', '=', 0)
    .where('state', '!=', 'processing')
    .orderBy('id')
    .forUpdate()
    .skipLocked()
    .execute()
  const lockedIds = locked.map(({ id }) => id)
  const names = await trx
    .deleteFrom('renditions')
    .where(sql<boolean>`source_id = any (${lockedIds}::uuid[])`)
    .returning([sql<string>`encode(sha256, 'hex')`.as('sha256'), 'kind as extension'])
    .execute()
  const variants = await deleteVariantsOf(trx, lockedIds)
  await trx.deleteFrom('sources').where(sql<boolean>`id = any (${lockedIds}::uuid[])`).execute()
  return [...names, ...variants]
}

/** Deletes what 410 was answered by; 404 follows. `unblock` needs those with which bytes are blocked. */
export const deleteTombstones = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'clips', {
    ...{ column: 'deleted_at', before },
    // Not `not exists`: a plan could join the tables, and then read all clips for each batch.
    condition: sql`(select true from ${sql.table('blocked_hashes')} where clip_id = id limit 1) is null`,
  })

/** Deletes counters whose window has ended; the library's `expire` is in milliseconds. */
export const deleteExpiredLimits = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'rate_limits', { column: 'expire', before: before.getTime() })
