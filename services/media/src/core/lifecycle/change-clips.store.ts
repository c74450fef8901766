import { sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Access } from '../clips/access.ts'
import { tagKey } from '../clips/clip-fields.ts'

export type LockedClip = Awaited<ReturnType<typeof lockClips>>[number]

/** Locks clips in the order of their ids, deleted ones too; those of one token, unless it is undefined. */
export const lockClips = (trx: Transaction<DB>, ids: readonly string[], tokenId: string | undefined) =>
  trx
    .selectFrom('clips')
    .select(['id', 'token_id as tokenId', 'source_id as sourceId', 'tags', 'visibility', 'expires_at as expiresAt'])
    .select(['sliding_seconds as slidingSeconds', 'created_at as createdAt', 'deleted_at as deletedAt'])
    .where('id', '=', sql<string>`any(${ids}::text[])`)
    .$if(tokenId !== undefined, (query) => query.where('token_id', '=', tokenId as string))
    .orderBy('id')
    .forUpdate()
    .execute()

/**
 * Keeps workers from changing the search rows of these clips, which the triggers of `clips` change, too. Clips that
 * share a source have several of them, and a worker has an order of its own. The caller has locked the clips.
 */
export const holdSources = (trx: Transaction<DB>, clips: readonly Pick<LockedClip, 'sourceId'>[]) =>
  trx
    .selectFrom('sources')
    .select('id')
    .where('id', '=', sql<string>`any(${clips.map(({ sourceId }) => sourceId)}::uuid[])`)
    .orderBy('id')
    .forShare()
    .execute()

export async function setTags(trx: Transaction<DB>, clips: readonly { id: string; tags: string[] }[]): Promise<void> {
  const rows = clips.map(({ id, tags }) => ({ id, tags, tag_keys: tags.map(tagKey) }))
  await sql`update ${sql.table('clips')} clip set tags = given.tags, tag_keys = given.tag_keys
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) given (id text, tags text[], tag_keys text[])
    where clip.id = given.id`.execute(trx)
}

export async function setAccess(trx: Transaction<DB>, clips: readonly { id: string; access: Access }[]): Promise<void> {
  const rows = clips.map(({ id, access }) => ({ id, ...access }))
  await sql`update ${sql.table('clips')} clip set visibility = given.visibility, expires_at = given."expiresAt",
      sliding_seconds = given."slidingSeconds"
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      given (id text, visibility text, "expiresAt" timestamptz, "slidingSeconds" integer)
    where clip.id = given.id`.execute(trx)
}

/** A clip for which `nsfw` was decided keeps it. */
export async function setNsfw(trx: Transaction<DB>, ids: readonly string[], nsfw: boolean): Promise<void> {
  await trx
    .updateTable('clips')
    .set({ nsfw: sql<boolean>`${nsfw} or nsfw_forced` })
    .where('id', '=', sql<string>`any(${ids}::text[])`)
    .execute()
}
