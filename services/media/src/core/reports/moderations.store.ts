import { batchesOf } from '@services/common/concurrency/chunks'
import { BATCH } from '@services/common/housekeeping/delete-in-batches'
import { type Insertable, type Kysely, type Selectable, sql, type Transaction } from 'kysely'
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

/** The latest decisions about each of these clips, newest first. */
export async function listModerationsOf(
  db: Kysely<DB>,
  clipIds: readonly string[],
  most: number,
): Promise<Map<string, Moderation[]>> {
  const rows = await db
    .selectFrom(sql<{ id: string }>`unnest(${clipIds}::text[])`.as<'clip'>(sql`clip(id)`))
    .innerJoinLateral(
      (eb) =>
        eb
          .selectFrom('moderations')
          .selectAll()
          .whereRef('moderations.clip_id', '=', 'clip.id')
          .orderBy('created_at', 'desc')
          .orderBy('moderations.id', 'desc')
          .limit(most)
          .as('latest'),
      (join) => join.onTrue(),
    )
    .selectAll('latest')
    .execute()
  return Map.groupBy(rows, ({ clip_id: id }) => id)
}
