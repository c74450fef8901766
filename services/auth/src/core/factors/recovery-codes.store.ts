import { type Insertable, type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { showFactors } from './factors.store.ts'

/** Replaces a user's set by codes of one new set. */
export async function replaceRecoveryCodes(
  trx: Transaction<DB>,
  userId: string,
  codes: readonly Insertable<DB['recovery_codes']>[],
): Promise<void> {
  await trx.deleteFrom('recovery_codes').where('user_id', '=', userId).execute()
  await trx.insertInto('recovery_codes').values(codes).execute()
  await showFactors(trx, [userId])
}

export function findRecoveryCodes(db: Kysely<DB>, userId: string) {
  return db
    .selectFrom('recovery_codes')
    .select([
      'set_id as id',
      'friendly_name',
      sql<number>`count(*)::int`.as('total'),
      sql<number>`count(*) filter (where used_at is null)::int`.as('remaining'),
    ])
    .where('user_id', '=', userId)
    .groupBy(['set_id', 'friendly_name'])
    .executeTakeFirst()
}

/** Uses a code up; of parallel attempts one gets true. */
export async function spendRecoveryCode(
  trx: Transaction<DB>,
  userId: string,
  hash: Buffer,
  now: Date,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('recovery_codes')
    .set({ used_at: now })
    .where('user_id', '=', userId)
    .where('code_hash', '=', hash)
    .where('used_at', 'is', null)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

export async function deleteRecoveryCodes(trx: Transaction<DB>, userId: string): Promise<void> {
  await trx.deleteFrom('recovery_codes').where('user_id', '=', userId).execute()
  await showFactors(trx, [userId])
}
