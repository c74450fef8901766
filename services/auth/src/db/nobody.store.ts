import { createHash } from 'node:crypto'
import { deleteBatch } from '@services/common/database'
import { type Expression, type Kysely, type QueryCreator, type SqlBool, sql } from 'kysely'
import type { DB } from './tables.ts'

/**
 * Writes rows that stand for nothing, where an account's would be written: a write that must reach the disk takes longer than
 * none, which would tell who has an account. The same row for the same `what`.
 */
export async function writeForNobody(db: Kysely<DB>, whats: readonly string[], now: Date): Promise<void> {
  await db
    .insertInto('nobodys_rows')
    .values(whats.map((what) => ({ key: keyOf(what), written_at: now })))
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ written_at: now }))
    .execute()
}

/** The same as a part of a statement that writes for an account: a row where `isNobody`. */
export function insertForNobody(db: QueryCreator<DB>, what: string, now: Date, isNobody: Expression<SqlBool>) {
  return db
    .insertInto('nobodys_rows')
    .columns(['key', 'written_at'])
    .expression(sql`select ${keyOf(what)}::bytea, ${now}::timestamptz where ${isNobody}`)
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ written_at: now }))
}

const keyOf = (what: string) => createHash('sha256').update(what).digest()

/** Housekeeping. */
export const deleteForNobody = (db: Kysely<DB>, before: Date, limit: number): Promise<number> =>
  deleteBatch(db, 'nobodys_rows', sql`written_at < ${before}`, limit)
