import { createHash } from 'node:crypto'
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'

export interface OnceOnly {
  /** Message with its chain and address, or nonce. */
  what: readonly string[]
  /** Time from which it is refused anyway. */
  expiresAt: Date
}

/**
 * Marks all as used in the transaction of the sign-in; false if one of them was. A concurrent use waits for the first
 * one, so a sign-in that is refused uses up nothing.
 */
export async function markUsed(trx: Transaction<DB>, uses: readonly OnceOnly[]): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('used_web3_messages')
    .values(uses.map(({ what, expiresAt }) => ({ key: keyOf(what), expires_at: expiresAt })))
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return numInsertedOrUpdatedRows === BigInt(uses.length)
}

const keyOf = (what: readonly string[]) => createHash('sha256').update(JSON.stringify(what)).digest()

export const deleteExpiredUses = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'used_web3_messages', { column: 'expires_at', before })
