import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** Advances a session to a counter that the database has lost; false when it is there already, or has ended. */
export async function recoverSession(trx: Transaction<DB>, id: string, counter: number, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('sessions')
    .set({ refresh_counter: counter, refreshed_at: now })
    .where('id', '=', id)
    .where('refresh_counter', '<', counter)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Longest wait for the row: after a deadline that passed waiting for a lock, nothing may go on waiting for it. */
const RESTART_WITHIN_MS = 500

/** Restarts the reuse interval of a token replaced after `since` at `until`. Throws while the session is locked. */
export async function restartReuseInterval(
  db: Kysely<DB>,
  { sessionId, counter }: { sessionId: string; counter: number },
  { since, until }: { since: Date; until: Date },
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await sql`set local lock_timeout = ${sql.lit(RESTART_WITHIN_MS)}`.execute(trx)
    await trx
      .updateTable('sessions')
      .set({ refreshed_at: until })
      .where('id', '=', sessionId)
      .where('refresh_counter', '=', counter + 1)
      .where('refreshed_at', '>=', since)
      .execute()
  })
}
