import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import type { Insertable, Kysely, Selectable } from 'kysely'
import type { DB } from '../../db/tables.ts'

export type StoredHookFailure = Selectable<DB['hook_failures']>

/** Rows that are kept for each point. */
const KEPT = 20

/** Stores a failure and deletes the oldest rows of its point beyond those that are kept. */
export async function insertHookFailure(db: Kysely<DB>, failure: Insertable<DB['hook_failures']>): Promise<void> {
  await db
    .with('added', (qb) => qb.insertInto('hook_failures').values(failure))
    .deleteFrom('hook_failures')
    .where('id', 'in', (qb) =>
      qb
        .selectFrom('hook_failures')
        .select('id')
        .where('point', '=', failure.point)
        .orderBy('failed_at', 'desc')
        .orderBy('id', 'desc')
        // The added row is not visible yet.
        .offset(KEPT - 1),
    )
    .execute()
}

/** Lists all, newest first. */
export const listHookFailures = (db: Kysely<DB>): Promise<StoredHookFailure[]> =>
  db.selectFrom('hook_failures').selectAll().orderBy('failed_at', 'desc').orderBy('id', 'desc').limit(500).execute()

export const deleteOldHookFailures = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'hook_failures', { column: 'failed_at', before })
