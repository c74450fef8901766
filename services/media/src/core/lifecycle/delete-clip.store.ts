import { sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { lockClip } from '../clips/clips.store.ts'

/** Columns cleared on soft delete. The file hash stays, so that the bytes can still be blocked. */
const TOMBSTONE = {
  source_id: null,
  deleted_sha256: sql<Buffer>`(
    select coalesce(file_sha256, sha256) from ${sql.table('sources')} source where source.id = source_id)`,
  title: null,
  tags: [] as string[],
  tag_keys: [] as string[],
  attribution: null,
  source_url: null,
}

/** Leaves a tombstone without the texts of the owner. Returns the source it had; undefined if it was deleted before. */
export async function softDeleteClipRow(trx: Transaction<DB>, id: string, now: Date): Promise<string | undefined> {
  const clip = await lockClip(trx, id)
  if (!clip) return undefined
  await softDeleteClipRows(trx, [id], now)
  return clip.source_id ?? undefined
}

/** Deletes the row, for a clip that was never ready. Returns its source. */
export async function hardDeleteClipRow(trx: Transaction<DB>, id: string): Promise<string | undefined> {
  const erased = await trx.deleteFrom('clips').where('id', '=', id).returning('source_id').executeTakeFirst()
  return erased?.source_id ?? undefined
}

/** Leaves tombstones; the caller has locked the clips and detaches them from their sources. */
export async function softDeleteClipRows(trx: Transaction<DB>, ids: readonly string[], now: Date): Promise<void> {
  await trx
    .updateTable('clips')
    .set({ ...TOMBSTONE, deleted_at: now })
    .where('id', '=', sql<string>`any(${ids}::text[])`)
    .execute()
}

/** Leaves tombstones of expired clips without a token, which have neither webhooks nor a quota. Returns the source of each. */
export async function softDeleteExpiredRows(
  trx: Transaction<DB>,
  expired: readonly string[],
  now: Date,
): Promise<string[]> {
  const clips = await trx
    .selectFrom('clips')
    .select(['id', 'source_id'])
    .where(sql<boolean>`id = any (${expired}::text[])`)
    .where('deleted_at', 'is', null)
    .where('token_id', 'is', null)
    .where('expires_at', '<=', now)
    .orderBy('id')
    .forUpdate()
    .skipLocked()
    .execute()
  const ids = clips.map(({ id }) => id)
  await softDeleteClipRows(trx, ids, now)
  return clips.flatMap((clip) => clip.source_id ?? [])
}
