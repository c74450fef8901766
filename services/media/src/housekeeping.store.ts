import { type Kysely, sql, type Transaction } from 'kysely'
import { deleteRenditions } from './core/clips/renditions.store.ts'
import type { DB } from './db/tables.ts'
import type { BlobName } from './store/blobs/blob-storage.ts'

// States of partial indexes are spelled out: PostgreSQL matches one only with what it can read when it plans, never with a
// parameter.

/** A part of a list in the order of ids: what comes after the last one of the part before. */
interface Page {
  before: Date
  after: string | undefined
  limit: number
}

/** Before every id there is. */
const NIL = '00000000-0000-0000-0000-000000000000'

/** What is being made since before `before`. */
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

/** Clips whose source has failed before `before`. */
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

/** Clips whose time was over before `before`. */
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

/** Sources without a clip since `before`; what is being made is left until it is made. */
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

/** Locks the source if it still has no clip: from here on nobody can attach to it. */
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

/** Deletes the source; the names of the files it referred to, whose references are now to be dropped. */
export async function deleteSource(trx: Transaction<DB>, id: string): Promise<BlobName[]> {
  const names = await deleteRenditions(trx, id)
  await trx.deleteFrom('sources').where('id', '=', id).execute()
  return names
}
