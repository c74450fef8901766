import { jsonb } from '@services/common/database'
import { sql, type Transaction } from 'kysely'
import type { DB, Metadata } from '../db/tables.ts'

export interface NewIdentity {
  id: string
  userId: string
  provider: string
  /** The account's id at the provider; for `email` and `phone` the user's own id. */
  providerId: string
  data: Metadata
  now: Date
}

export async function insertIdentity(trx: Transaction<DB>, identity: NewIdentity): Promise<void> {
  await trx
    .insertInto('identities')
    .values({
      id: identity.id,
      user_id: identity.userId,
      provider: identity.provider,
      provider_id: identity.providerId,
      identity_data: jsonb(identity.data),
      last_sign_in_at: identity.now,
      created_at: identity.now,
      updated_at: identity.now,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Whether any account of the audience is linked with this address, whatever the account's own address is. */
export async function findUserIdByIdentityEmail(trx: Transaction<DB>, email: string, aud: string) {
  const found = await trx
    .selectFrom('identities')
    .innerJoin('users', 'users.id', 'identities.user_id')
    .select('identities.user_id')
    .where('identities.email', '=', email)
    .where('users.aud', '=', aud)
    .limit(1)
    .executeTakeFirst()
  return found?.user_id
}

/** Marks the address as verified in the user's identities that carry it. */
export async function setIdentityEmailVerified(trx: Transaction<DB>, userId: string, email: string, now: Date) {
  await trx
    .updateTable('identities')
    .set({ identity_data: sql`identity_data || '{"email_verified": true}'::jsonb`, updated_at: now })
    .where('user_id', '=', userId)
    .where('email', '=', email)
    .execute()
}

/**
 * The identity a proven address belongs to: made when there is none, brought up to date otherwise. Its id at the provider
 * is the user's own. True when it is new.
 */
export async function putAddressIdentity(
  trx: Transaction<DB>,
  {
    id,
    userId,
    provider,
    address,
    now,
  }: {
    id: string
    userId: string
    provider: 'email' | 'phone'
    address: string
    now: Date
  },
): Promise<boolean> {
  const data = { sub: userId, [provider]: address, [`${provider}_verified`]: true }
  const existing = await trx
    .updateTable('identities')
    .set({ identity_data: sql`identity_data || ${JSON.stringify(data)}::jsonb`, updated_at: now })
    .where('user_id', '=', userId)
    .where('provider', '=', provider)
    .returning('id')
    .executeTakeFirst()
  if (existing) return false
  await insertIdentity(trx, { id, userId, provider, providerId: userId, data, now })
  return true
}
