import { type Kysely, sql } from 'kysely'
import { makeLinkSalt } from '../../../core/clip-access/share-links.ts'
import type { DB } from '../../../db/tables.ts'

/** Gives clips that no link leads to yet the salt of their links; returns the salts of all `ids`. */
export async function giveLinkSalts(db: Kysely<DB>, ids: readonly string[]): Promise<Map<string, Buffer>> {
  const salts = ids.map(makeLinkSalt)
  const given = sql<{
    id: string
    salt: Buffer
  }>`(select * from unnest(${ids}::text[], ${salts}::bytea[]) as t (id, salt))`
  const rows = await db
    .updateTable('clips')
    .from(given.as('given'))
    .set((column) => ({ link_salt: column.fn.coalesce('clips.link_salt', 'given.salt') }))
    .whereRef('clips.id', '=', 'given.id')
    .where('clips.deleted_at', 'is', null)
    .returning(['clips.id', 'clips.link_salt'])
    .execute()
  return new Map(rows.flatMap(({ id, link_salt: salt }) => (salt ? [[id, salt]] : [])))
}

/** Waiting clips of a token, the next first, as far as a place in the line is worth naming. */
export async function listWaiting(db: Kysely<DB>, tokenId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('clips')
    .innerJoin('sources', 'sources.id', 'clips.source_id')
    .select('clips.id')
    .where('clips.token_id', '=', tokenId)
    .where('clips.deleted_at', 'is', null)
    .where('sources.state', '=', sql.lit('processing'))
    .where('sources.progress', '=', 0)
    .orderBy('sources.created_at')
    .limit(MOST_WAITING)
    .execute()
  return rows.map(({ id }) => id)
}

const MOST_WAITING = 1000
