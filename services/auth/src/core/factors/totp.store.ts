import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** Spends a TOTP step: false if it, or a later one, was spent before; of parallel attempts one gets true. */
export async function spendStep(trx: Transaction<DB>, id: string, step: number): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('factors')
    .set({ last_used_step: step })
    .where('id', '=', id)
    .where((eb) => eb.or([eb('last_used_step', 'is', null), eb('last_used_step', '<', step)]))
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}
