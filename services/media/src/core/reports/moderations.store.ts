import { batchesOf } from '@services/common/concurrency/chunks'
import { BATCH } from '@services/common/housekeeping/delete-in-batches'
import type { Insertable, Kysely, Selectable, Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'

export type Moderation = Selectable<DB['moderations']>

/** Inserts in batches: PostgreSQL takes 65,535 parameters in a statement, and one decision may be about more clips. */
export async function insertModerations(
  trx: Transaction<DB>,
  moderations: readonly Insertable<DB['moderations']>[],
): Promise<void> {
  for (const batch of batchesOf(moderations, BATCH)) await trx.insertInto('moderations').values(batch).execute()
}

/** The latest decisions about a clip, newest first. */
export async function listModerations(db: Kysely<DB>, clipId: string, most: number): Promise<Moderation[]> {
  return db
    .selectFrom('moderations')
    .selectAll()
    .where('clip_id', '=', clipId)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(most)
    .execute()
}
