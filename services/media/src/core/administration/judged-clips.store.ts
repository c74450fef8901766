import { type Kysely, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { isExpired } from '../clips/access.ts'
import { ownerState } from '../clips/clips.store.ts'

/** Clips `ids` of any token and in any state. */
export async function findJudgedClips(db: Kysely<DB>, ids: readonly string[], now: Date) {
  const rows = await db
    .selectFrom('clips')
    .leftJoin('sources', 'sources.id', 'clips.source_id')
    .leftJoin('api_tokens', 'api_tokens.id', 'clips.token_id')
    .select(['clips.id', 'clips.title', 'clips.nsfw', 'clips.created_at as createdAt', 'clips.expires_at as expiresAt'])
    .select(['clips.hidden_at as hiddenAt', 'sources.state', 'api_tokens.id as tokenId', 'api_tokens.name'])
    .where('clips.id', '=', sql<string>`any(${ids}::text[])`)
    .execute()
  return rows.map(({ id, title, nsfw, createdAt, tokenId, name, state, ...clip }) => {
    const current = state === null || isExpired(clip, now) ? 'deleted' : state
    const token = tokenId === null ? null : { id: tokenId, name: name ?? '' }
    return { id, title, nsfw, createdAt, token, state: ownerState({ ...clip, state: current }) }
  })
}

/** Ids of clips by their id, or by the hash of their file in hex, newest first; deleted ones too. */
export async function findJudgedIds(db: Kysely<DB>, text: string, limit: number): Promise<string[]> {
  if (text.length < 64) {
    const clip = await db.selectFrom('clips').select('id').where('id', '=', text).executeTakeFirst()
    return clip ? [clip.id] : []
  }
  const hash = Buffer.from(text, 'hex')
  // Each part has an index; failed sources have none by their hash.
  const { rows } = await sql<{ id: string }>`
    select id from ${sql.table('clips')} where source_id in (
      select id from ${sql.table('sources')} where sha256 = ${hash} and state <> 'failed'
      union select id from ${sql.table('sources')} where file_sha256 = ${hash}
      union select source_id from ${sql.table('renditions')} where sha256 = ${hash}
    ) order by created_at desc limit ${limit}`.execute(db)
  return rows.map(({ id }) => id)
}
