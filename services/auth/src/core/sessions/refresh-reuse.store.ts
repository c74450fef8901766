import type { Transaction } from 'kysely'
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
