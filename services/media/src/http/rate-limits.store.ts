import type { Kysely } from 'kysely'
import type { DB } from '../db/tables.ts'

/** Housekeeping: counters whose window is over; the library's `expire` is in milliseconds. */
export async function deleteExpiredLimits(db: Kysely<DB>, before: Date): Promise<void> {
  await db.deleteFrom('rate_limits').where('expire', '<', before.getTime()).execute()
}
