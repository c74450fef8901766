import { deleteBatch } from '@services/common/database'
import { type Kysely, sql, type Transaction } from 'kysely'
import { deleteRenditions } from './core/clips/renditions.store.ts'
import type { DB } from './db/tables.ts'
import type { BlobName } from './store/blobs/blob-storage.ts'

// States are literals: the planner matches a partial index with constants only, never with a parameter.

/** A page of a list in the order of ids; `after` is the last id of the previous page. */
interface Page {
  before: Date
  after: string | undefined
  limit: number
}

/** Sorts before all ids. */
const NIL = '00000000-0000-0000-0000-000000000000'

/** Sources that were added before `before` and are still processing. */
export async function listProcessing(db: Kysely<DB>, { before, after, limit }: Page): Promise<string[]> {
  const rows = await db
    .selectFrom('sources')
    .select('id')
    .where('created_at', '<', before)
    .where(sql<boolean>`state = 'processing'`)
    .where('id', '>', after ?? NIL)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

export async function listFailedClips(db: Kysely<DB>, { before, after = '', limit }: Page): Promise<string[]> {
  const rows = await db
    .selectFrom('clips')
    .innerJoin('sources', 'sources.id', 'clips.source_id')
    .select('clips.id')
    .where(sql<boolean>`state = 'failed'`)
    .where('sources.finished_at', '<', before)
    .where('clips.id', '>', after)
    .orderBy('clips.id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

export async function listExpiredClips(db: Kysely<DB>, { before, after = '', limit }: Page): Promise<string[]> {
  const rows = await db
    .selectFrom('clips')
    .select('id')
    .where('expires_at', 'is not', null)
    .where('deleted_at', 'is', null)
    .where('expires_at', '<', before)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/** Decided sources without clips since `before`. */
export async function listUnreferencedSources(db: Kysely<DB>, { before, after, limit }: Page): Promise<string[]> {
  const rows = await db
    .selectFrom('sources')
    .select('id')
    .where('unreferenced_at', '<', before)
    .where('state', '!=', 'processing')
    .where('id', '>', after ?? NIL)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/** Locks the source if it still has no clip; from here on no clip can join it. */
export async function lockUnreferencedSource(trx: Transaction<DB>, id: string): Promise<boolean> {
  const locked = await trx
    .selectFrom('sources')
    .select('id')
    .where('id', '=', id)
    .where('clip_count', '=', 0)
    .where('state', '!=', 'processing')
    .forUpdate()
    .executeTakeFirst()
  return locked !== undefined
}

/** Returns the names of the source's files; the caller drops their references. */
export async function deleteSource(trx: Transaction<DB>, id: string): Promise<BlobName[]> {
  const names = await deleteRenditions(trx, id)
  await trx.deleteFrom('sources').where('id', '=', id).execute()
  return names
}

/** Deletes counters whose window has ended; the library's `expire` is in milliseconds. */
export function deleteExpiredLimits(db: Kysely<DB>, before: Date, limit: number): Promise<number> {
  return deleteBatch(db, 'rate_limits', sql`expire < ${before.getTime()}`, limit)
}
