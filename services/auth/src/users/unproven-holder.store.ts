// Accounts that have an address nobody has proven, by a sign-up or at a provider. Whoever proves it takes it
// (../verify/displace-holder.ts, ../identities/external-user.ts). An invitation and an account an admin made are an admin's word for the address and stay.
import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../db/tables.ts'
import type { Address } from './address.ts'

export interface Holding {
  address: Address
  audience: string
  /** Whose wish the address is. */
  exceptId: string
}

/** Whether another account has the address and has not proven it. */
export async function isHeldUnproven(db: Kysely<DB>, holding: Holding): Promise<boolean> {
  return (await unprovenHolder(db, holding).select('id').executeTakeFirst()) !== undefined
}

/** The same account, held until the transaction ends. */
export const lockUnprovenHolder = (trx: Transaction<DB>, holding: Holding) =>
  unprovenHolder(trx, holding).select(['id', 'email', 'phone']).forUpdate().executeTakeFirst()

const unprovenHolder = (db: Kysely<DB>, { address: { channel, value }, audience, exceptId }: Holding) =>
  db
    .selectFrom('users')
    .where(channel, '=', value)
    .where('aud', '=', audience)
    .where(`${channel}_confirmed_at`, 'is', null)
    .where('invited_at', 'is', null)
    .where('made_by_admin', '=', false)
    .where('id', '!=', exceptId)

/** Takes an unproven address from an account that has another one, with the identity and the tokens that were about it. */
export async function dropAddress(trx: Transaction<DB>, id: string, { channel, value }: Address, now: Date) {
  await trx
    .updateTable('users')
    .set({ [channel]: null, updated_at: now })
    .where('id', '=', id)
    .execute()
  await trx.deleteFrom('identities').where('user_id', '=', id).where('provider', '=', channel).execute()
  await trx.deleteFrom('one_time_tokens').where('user_id', '=', id).where('relates_to', '=', value).execute()
}
