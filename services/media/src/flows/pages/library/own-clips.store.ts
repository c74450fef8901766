import { type Kysely, sql } from 'kysely'
import { makeLinkSalt } from '../../../core/clip-access/share-links.ts'
import type { DB } from '../../../db/tables.ts'

/**
 * Gives clips that no link leads to yet the salt of their links; returns the salts of all `ids`. Locks them in the
 * order of their ids, as all that changes many clips does.
 */
export async function giveLinkSalts(db: Kysely<DB>, ids: readonly string[]): Promise<Map<string, Buffer>> {
  const salts = ids.map(makeLinkSalt)
  const clips = sql.table('clips')
  const { rows } = await sql<{ id: string; salt: Buffer }>`
    with locked as materialized (
      select clip.id, given.salt from unnest(${ids}::text[], ${salts}::bytea[]) given (id, salt)
        join ${clips} clip on clip.id = given.id
        where clip.deleted_at is null order by clip.id for no key update of clip)
    update ${clips} clip set link_salt = coalesce(clip.link_salt, locked.salt) from locked
      where clip.id = locked.id returning clip.id, clip.link_salt as salt`.execute(db)
  return new Map(rows.map(({ id, salt }) => [id, salt]))
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
