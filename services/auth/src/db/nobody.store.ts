import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { DB } from './tables.ts'

/**
 * Writes a row that stands for nothing, where an account's would be written: a write that must reach the disk takes longer than
 * none, which would tell who has an account. Housekeeping takes it away with the gaps that are over.
 */
export async function writeForNobody(db: Kysely<DB>, what: string, now: Date): Promise<void> {
  const key = nobodysKey(what)
  const times = { sent_at: now, expires_at: now }
  await db
    .insertInto('send_gaps')
    .values({ key, ...times })
    .onConflict((conflict) => conflict.column('key').doUpdateSet(times))
    .execute()
}

/** Key of such a row, for statements that write it themselves. */
export const nobodysKey = (what: string): Buffer => createHash('sha256').update(`nobody\0${what}`).digest()
