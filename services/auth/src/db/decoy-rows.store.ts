import { createHash } from 'node:crypto'
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Expression, type Kysely, type QueryCreator, type SqlBool, sql } from 'kysely'
import type { DB } from './tables.ts'

/** Writes rows where an account's would be: a missing disk write reveals an unknown address. One row per `what`. */
export async function writeDecoys(db: Kysely<DB>, whats: readonly string[], now: Date): Promise<void> {
  await db
    .insertInto('decoy_rows')
    .values(whats.map((what) => ({ key: keyOf(what), written_at: now })))
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ written_at: now }))
    .execute()
}

/** Part of a statement that writes for an account: inserts the decoy if `isUnknown`. */
export function insertDecoy(db: QueryCreator<DB>, what: string, now: Date, isUnknown: Expression<SqlBool>) {
  return db
    .insertInto('decoy_rows')
    .columns(['key', 'written_at'])
    .expression(sql`select ${keyOf(what)}::bytea, ${now}::timestamptz where ${isUnknown}`)
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ written_at: now }))
}

const keyOf = (what: string) => createHash('sha256').update(what).digest()

export const deleteDecoys = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'decoy_rows', { column: 'written_at', before })
