import { deleteBatch } from '@services/common/database'
import { type Kysely, sql } from 'kysely'
import type { DB } from '../db/tables.ts'

/** Deletes counters whose window has ended; the library's `expire` is in milliseconds. */
export function deleteExpiredLimits(db: Kysely<DB>, before: Date, limit: number): Promise<number> {
  return deleteBatch(db, 'rate_limits', sql`expire < ${before.getTime()}`, limit)
}
