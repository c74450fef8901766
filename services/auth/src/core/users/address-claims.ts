// Claims: password and metadata in requests for an unproven address. Any request may be a stranger's, so the proof of
// the address applies only values on which all agree. Tests: ../../../test/claims.test.ts.
import { createHmac, hash, type KeyObject } from 'node:crypto'
import type { Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { Claim, DB } from '../../db/tables.ts'
import { type AddressClaim, narrowClaims, putAddressClaim, replaceRegistered } from './address-claims.store.ts'
import { registeredData, withoutFacts } from './proven-addresses.ts'
import { type LockedUser, setPassword } from './users.store.ts'

interface ClaimDeps {
  config: Pick<Config, 'mail' | 'sms'>
  codeKey: KeyObject
  now: () => Date
}

/**
 * Shortest lifetime of a claim. An owner may wait for a message longer than its code lives (600 s in an SMS). A
 * stranger's request meanwhile must not be the only claim.
 */
const MIN_LIFETIME_SECONDS = 3600

export function claimOf(
  { config, codeKey, now }: ClaimDeps,
  { address, passwordHash, data }: Pick<AddressClaim, 'address' | 'passwordHash' | 'data'>,
): AddressClaim {
  const { channel, value } = address
  const { codeLifetimeSeconds } = channel === 'email' ? config.mail : config.sms
  const time = now()
  return {
    address,
    key: createHmac('sha256', codeKey).update(`claim\0${channel}\0${value}`).digest(),
    passwordHash,
    passwordTag: hash('sha256', passwordHash ?? '', 'buffer'),
    data: withoutFacts(data),
    now: time,
    expiresAt: new Date(time.getTime() + Math.max(codeLifetimeSeconds, MIN_LIFETIME_SECONDS) * 1000),
  }
}

/**
 * Stores a claim, for known and unknown addresses alike. Returns the part that agrees with all unexpired ones, which
 * pending accounts get with the proof of the address. The row lock serialises requests for one address. Two statements:
 * the first may wait for another request, and the second must see the account it made. Flows call this twice: before
 * any refusal, and with the message, when the lifetime of its link or code begins.
 */
export async function recordClaim(trx: Transaction<DB>, claim: AddressClaim): Promise<Claim> {
  const stored = await putAddressClaim(trx, claim, 'with earlier')
  const left: Claim = {
    password_hash: stored.password_differs ? null : claim.passwordHash,
    data: stored.data_differs ? {} : claim.data,
  }
  await narrowClaims(trx, claim, left)
  return left
}

/** Stores the claim of an admin, which ends all earlier ones. */
export async function recordAdminClaim(trx: Transaction<DB>, claim: AddressClaim): Promise<void> {
  await putAddressClaim(trx, claim, 'alone')
}

export async function applyClaim(
  trx: Transaction<DB>,
  { id, ...addresses }: Pick<LockedUser, 'id' | 'email' | 'phone'>,
  { password_hash, data, by_admin }: Claim,
  now: Date,
): Promise<void> {
  await setPassword(trx, id, password_hash, now)
  const channel = addresses.email ? 'email' : 'phone'
  const registered = registeredData(id, { channel, value: addresses[channel] ?? '' }, by_admin ? {} : data)
  await replaceRegistered(trx, id, channel, { identityData: registered, metadata: by_admin ? data : registered, now })
}
