import type { Config } from '../../config.ts'
import type { Claim, Metadata } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import type { Address } from '../users/address.ts'
import { registeredData } from '../users/proven-addresses.ts'
import { NEVER_SENT, type User } from '../users/users.store.ts'

/** Makes a user without addresses or data, which flows fill in. */
export function blankUser(id: string, aud: string, role: string, now: Date): User {
  return {
    id,
    aud,
    role,
    email: null,
    phone: null,
    email_confirmed_at: null,
    phone_confirmed_at: null,
    email_assumed: false,
    phone_assumed: false,
    confirmed_at: null,
    invited_at: null,
    ...NEVER_SENT,
    email_change: null,
    email_change_session_id: null,
    phone_change: null,
    phone_change_session_id: null,
    last_sign_in_at: null,
    app_metadata: {},
    user_metadata: {},
    is_anonymous: false,
    banned_until: null,
    deleted_at: null,
    created_at: now,
    updated_at: now,
    identities: [],
    factors: null,
  }
}

export interface Account {
  user: User
  address: Address
  passwordHash: string | null
}

/** Makes the user and identity of a sign-up. The caller's data overrides no facts and adds no address. */
export function newAccount(
  deps: { config: Pick<Config, 'jwt'>; newId: () => string; now: () => Date },
  { address, data, audience, id = deps.newId() }: { address: Address; data: Metadata; audience: string; id?: string },
  passwordHash: string | null,
): Account {
  const { channel, value } = address
  const now = deps.now()
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

const withData = (user: User, data: Metadata): User => ({
  ...user,
  user_metadata: data,
  identities: user.identities.map((identity) => ({ ...identity, identity_data: data })),
})

export const withClaim = ({ user, address }: Account, { password_hash: passwordHash, data }: Claim): Account => {
  return { user: withData(user, registeredData(user.id, address, data)), address, passwordHash }
}

/** Marks the address of an account as confirmed (autoconfirm). */
export function confirmed({ user, address, passwordHash }: Account): Account {
  const verified = withData(user, { ...user.user_metadata, [`${address.channel}_verified`]: true })
  return { user: { ...verified, [`${address.channel}_confirmed_at`]: user.created_at }, address, passwordHash }
}

/** Refuses when the account with the address was deleted meanwhile; a retry finds the address free. */
export function refuseVanishedAccount(): never {
  throw apiError('service_unavailable', { retryAfterSeconds: 1 })
}
