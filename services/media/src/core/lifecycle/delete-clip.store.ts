import { sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { lockClip } from '../clips/clips.store.ts'
import { detachFromSource, detachFromSources } from '../sources/source-clips.store.ts'

// All locks of a deletion are in one order: clips, their sources, the rows of the search. The last are locked by the
// triggers of `clips`; a worker that corrects a source's duration holds the source when it locks them.

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
  poster_at: null,
  poster_name: null,
  poster_placeholder: null,
  poster_request: null,
  poster_wanted: null,
  poster_state: null,
}

/** Leaves a tombstone without the texts of the owner. Returns the source it had; undefined if it was deleted before. */
export async function softDeleteClipRow(trx: Transaction<DB>, id: string, now: Date): Promise<string | undefined> {
  const clip = await lockClip(trx, id)
  if (!clip) return undefined
  if (clip.source_id) await detachFromSource(trx, clip.source_id, now)
  await leaveTombstones(trx, [id], now)
  return clip.source_id ?? undefined
}

/** Deletes the row of a clip that was never ready. Returns its source. */
export async function hardDeleteClipRow(trx: Transaction<DB>, id: string, now: Date): Promise<string | undefined> {
  const clip = await lockClip(trx, id)
  if (clip?.source_id) await detachFromSource(trx, clip.source_id, now)
  await trx.deleteFrom('clips').where('id', '=', id).execute()
  return clip?.source_id ?? undefined
}

/** Leaves tombstones; the caller has locked the clips. */
export async function softDeleteClipRows(
  trx: Transaction<DB>,
  clips: readonly { id: string; sourceId: string | null }[],
  now: Date,
): Promise<void> {
  const sourceIds = clips.flatMap(({ sourceId }) => sourceId ?? [])
  await detachFromSources(trx, sourceIds, now)
  const ids = clips.map(({ id }) => id)
  await leaveTombstones(trx, ids, now)
}

async function leaveTombstones(trx: Transaction<DB>, ids: readonly string[], now: Date): Promise<void> {
  await trx
    .updateTable('clips')
    .set({ ...TOMBSTONE, deleted_at: now })
    .where('id', '=', sql<string>`any(${ids}::text[])`)
    .execute()
}

/** Leaves tombstones of expired clips without a token, which have neither webhooks nor a quota. */
export async function softDeleteExpiredRows(
  trx: Transaction<DB>,
  expired: readonly string[],
  now: Date,
): Promise<void> {
  const clips = await trx
    .selectFrom('clips')
    .select(['id', 'source_id as sourceId'])
    .where(sql<boolean>`id = any (${expired}::text[])`)
    .where('deleted_at', 'is', null)
    .where('token_id', 'is', null)
    .where('expires_at', '<=', now)
    .orderBy('id')
    .forUpdate()
    .skipLocked()
    .execute()
  await softDeleteClipRows(trx, clips, now)
}
