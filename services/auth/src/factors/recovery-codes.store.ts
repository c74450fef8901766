import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../db/tables.ts'

/** Replaces what codes the user had. */
export async function replaceRecoveryCodes(
  trx: Transaction<DB>,
  set: { id: string; userId: string; hashes: readonly Buffer[]; now: Date },
): Promise<void> {
  await deleteRecoveryCodes(trx, set.userId)
  await trx
    .insertInto('recovery_codes')
    .values(set.hashes.map((hash) => ({ user_id: set.userId, code_hash: hash, set_id: set.id, created_at: set.now })))
    .execute()
}

/** The user's set, or undefined: how many codes it had and how many are left. */
export function findRecoveryCodes(
  db: Kysely<DB>,
  userId: string,
): Promise<{ id: string; total: number; remaining: number } | undefined> {
  return db
    .selectFrom('recovery_codes')
    .select([
      'set_id as id',
      sql<number>`count(*)::int`.as('total'),
      sql<number>`count(*) filter (where used_at is null)::int`.as('remaining'),
    ])
    .where('user_id', '=', userId)
    .groupBy('set_id')
    .executeTakeFirst()
}

/** Uses a code up: whoever gets true is the one, of any number at once. */
export async function spendRecoveryCode(
  trx: Transaction<DB>,
  userId: string,
  hash: Buffer,
  now: Date,
): Promise<boolean> {
  const spent = await trx
    .updateTable('recovery_codes')
    .set({ used_at: now })
    .where('user_id', '=', userId)
    .where('code_hash', '=', hash)
    .where('used_at', 'is', null)
    .returning('set_id')
    .executeTakeFirst()
  return spent !== undefined
}

export async function deleteRecoveryCodes(trx: Transaction<DB>, userId: string): Promise<void> {
  await trx.deleteFrom('recovery_codes').where('user_id', '=', userId).execute()
}
