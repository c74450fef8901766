import type { Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { Claim, DB, Metadata } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import type { Address } from '../users/address.ts'
import { blankUser } from '../users/blank-user.ts'
import { registeredData } from '../users/proven-addresses.ts'
import { releaseAddress } from '../users/unproven-holder.store.ts'
import { findUserByAddress, insertUser, type User } from '../users/users.store.ts'
import { insertIdentity } from './identities.store.ts'

export interface Account {
  user: User
  address: Address
  passwordHash: string | null
}

/**
 * The user and identity a sign-up would create. Data of the caller never overrides what the service knows, nor adds an
 * address.
 */
export function newAccount(
  deps: { config: Pick<Config, 'jwt'>; newId: () => string; now: () => Date },
  { address, data, audience }: { address: Address; data: Metadata; audience: string },
  passwordHash: string | null,
): Account {
  const { channel, value } = address
  const now = deps.now()
  const id = deps.newId()
  const identityData = registeredData(id, address, data)
  const user = {
    ...blankUser(id, audience, deps.config.jwt.defaultRole, now),
    [channel]: value,
    app_metadata: { provider: channel, providers: [channel] },
    user_metadata: identityData,
    identities: [
      {
        id: deps.newId(),
        provider_id: id,
        user_id: id,
        identity_data: identityData,
        provider: channel,
        last_sign_in_at: now.toISOString(),
        created_at: now.toISOString(),
        updated_at: now.toISOString(),
        email: channel === 'email' ? value : null,
      },
    ],
  }
  return { user, address, passwordHash }
}

/** The same account with what is left of its claim. */
export function withClaim({ user, address }: Account, { password_hash: passwordHash, data }: Claim): Account {
  const identity_data = registeredData(user.id, address, data)
  const identities = user.identities.map((identity) => ({ ...identity, identity_data }))
  return { address, passwordHash, user: { ...user, user_metadata: identity_data, identities } }
}

/** The same account with an address that counts as confirmed (autoconfirm). */
export function confirmed({ user, address, passwordHash }: Account): Account {
  const verified = { [`${address.channel}_verified`]: true }
  return {
    address,
    passwordHash,
    user: {
      ...user,
      [`${address.channel}_confirmed_at`]: user.created_at,
      user_metadata: { ...user.user_metadata, ...verified },
      identities: user.identities.map((identity) => ({
        ...identity,
        identity_data: { ...identity.identity_data, ...verified },
      })),
    },
  }
}

/**
 * Returns whose address it is now: the new user's, or that of the account that has it. An address that is confirmed already is so
 * by a setting, and stored as assumed.
 */
export async function insertAccount(
  deps: { now: () => Date },
  trx: Transaction<DB>,
  account: Account,
): Promise<string> {
  const { user, address, passwordHash } = account
  await releaseAddress(trx, address, user.aud, deps.now())
  const { identities, confirmed_at: _generated, ...row } = user
  const isAssumed = user[`${address.channel}_confirmed_at`] !== null
  const inserted = { ...row, password_hash: passwordHash, [`${address.channel}_assumed`]: isAssumed }
  if (!(await insertUser(trx, inserted))) {
    return (await findUserByAddress(trx, address, user.aud))?.id ?? refuseVanishedAccount()
  }
  for (const identity of identities) {
    await insertIdentity(trx, {
      id: identity.id,
      userId: user.id,
      provider: identity.provider,
      providerId: identity.provider_id,
      data: identity.identity_data,
      now: deps.now(),
    })
  }
  return user.id
}

/** The account that had the address was deleted in this very moment; the next try finds it free. */
export function refuseVanishedAccount(): never {
  throw apiError('service_unavailable', { retryAfterSeconds: 1 })
}
