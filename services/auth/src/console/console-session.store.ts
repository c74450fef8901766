import type { Kysely } from 'kysely'
import type { DB } from '../db/tables.ts'

/** Counts a use of the console as a use of its session, whose inactivity limit would end it otherwise. */
export const markSessionUsed = (db: Kysely<DB>, id: string, now: Date) =>
  db.updateTable('sessions').set({ refreshed_at: now }).where('id', '=', id).execute()
