import { createHash } from 'node:crypto'
import { deleteBatch } from '@services/common/database'
import { type Expression, type Kysely, type QueryCreator, type SqlBool, sql } from 'kysely'
import type { DB } from './tables.ts'

/**
 * Writes a row that stands for nothing, where an account's would be written: a write that must reach the disk takes longer than
 * none, which would tell who has an account. The same row for the same `what`.
 */
export async function writeForNobody(db: Kysely<DB>, what: string, now: Date): Promise<void> {
  await insertForNobody(db, what, now, sql`true`).execute()
}

/** The same as a part of a statement that writes for an account: a row where `isNobody`. */
export function insertForNobody(db: QueryCreator<DB>, what: string, now: Date, isNobody: Expression<SqlBool>) {
  const key = createHash('sha256').update(what).digest()
  return db
    .insertInto('nobodys_rows')
    .columns(['key', 'written_at'])
    .expression(sql`select ${key}::bytea, ${now}::timestamptz where ${isNobody}`)
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ written_at: now }))
}

/** Housekeeping. */
export const deleteForNobody = (db: Kysely<DB>, before: Date, limit: number): Promise<number> =>
  deleteBatch(db, 'nobodys_rows', sql`written_at < ${before}`, limit)
