import { sql, type Transaction } from 'kysely'
import type { DB, HiddenReason } from '../../db/tables.ts'

/** Locks the clips of these sources that are not deleted, in the order of their ids. */
export async function lockClipsOf(
  trx: Transaction<DB>,
  sourceIds: readonly string[],
): Promise<{ id: string; sourceId: string }[]> {
  const clips = await trx
    .selectFrom('clips')
    .select(['id', 'source_id as sourceId'])
    .where('source_id', '=', sql<string>`any(${sourceIds}::uuid[])`)
    .where('deleted_at', 'is', null)
    .orderBy('id')
    .forUpdate()
    .execute()
  return clips.map(({ id, sourceId }) => ({ id, sourceId: sourceId ?? '' }))
}

/** Hides the clips; those that are hidden keep their reason. Returns the ids of the others. */
export async function hideClips(
  trx: Transaction<DB>,
  ids: readonly string[],
  { reason, now }: { reason: HiddenReason; now: Date },
): Promise<string[]> {
  const hidden = await trx
    .updateTable('clips')
    .set({ hidden_at: now, hidden_reason: reason })
    .where('id', '=', sql<string>`any(${ids}::text[])`)
    .where('hidden_at', 'is', null)
    .returning('id')
    .execute()
  return hidden.map(({ id }) => id)
}

/** False when it was not hidden. */
export async function unhideClip(trx: Transaction<DB>, id: string): Promise<boolean> {
  const shown = await trx
    .updateTable('clips')
    .set({ hidden_at: null, hidden_reason: null })
    .where('id', '=', id)
    .where('hidden_at', 'is not', null)
    .returning('id')
    .executeTakeFirst()
  return shown !== undefined
}

export async function markNsfw(trx: Transaction<DB>, ids: readonly string[], isNsfw: boolean): Promise<void> {
  await trx
    .updateTable('clips')
    .set({ nsfw: isNsfw, nsfw_forced: isNsfw })
    .where('id', '=', sql<string>`any(${ids}::text[])`)
    .execute()
}
