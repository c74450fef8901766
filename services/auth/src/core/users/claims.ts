// What requests ask for an address that nobody has proven: a password and metadata. The one rule: any of them may be a
// stranger's, so the proof of the address brings what all of them agree about and nothing else. Applied by flows/verify/.
import { createHash, createHmac, type KeyObject } from 'node:crypto'
import type { Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { Claim, DB } from '../../db/tables.ts'
import { type AddressClaim, narrowClaims, putAddressClaim, replaceRegistered } from './claims.store.ts'
import { withoutFacts } from './proven-addresses.ts'
import { registeredData } from './registered-data.ts'
import { type LockedUser, setPassword } from './users.store.ts'

interface ClaimDeps {
  config: Pick<Config, 'mail' | 'sms'>
  codeKey: KeyObject
  now: () => Date
}

/**
 * Shortest life of a claim. An owner waits for a message longer than the code in it lives (600 s in an SMS): a stranger who
 * asks again meanwhile must not be the only one.
 */
const MIN_LIFETIME_SECONDS = 3600

/** The claim of a request that arrives now. */
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
    passwordTag: createHash('sha256')
      .update(passwordHash ?? '')
      .digest(),
    data: withoutFacts(data),
    now: time,
    expiresAt: new Date(time.getTime() + Math.max(codeLifetimeSeconds, MIN_LIFETIME_SECONDS) * 1000),
  }
}

/**
 * Notes what a request asks for, alike for known and unknown addresses, and answers what is left of it beside all other
 * requests that still count. Accounts that wait for the proof of the address get that with the proof. The row stays locked
 * until the transaction ends: requests at the same time for one address come one after the other.
 *
 * Two statements: the first may wait for another request, and the second has to see the account that one made. Flows note a
 * claim twice, before anything refuses the request and with the message, whose link or code lives from then.
 */
export async function noteClaim(trx: Transaction<DB>, claim: AddressClaim): Promise<Claim> {
  const noted = await putAddressClaim(trx, claim, 'beside others')
  const left: Claim = {
    password_hash: noted.password_differs ? null : claim.passwordHash,
    data: noted.data_differs ? {} : claim.data,
  }
  await narrowClaims(trx, claim, left)
  return left
}

/** The same at an admin's word, beside which no request before counts. */
export async function noteAdminClaim(trx: Transaction<DB>, claim: AddressClaim): Promise<void> {
  await putAddressClaim(trx, claim, 'alone')
}

/** What the account was registered with gives way to the claim; messages sent before say nothing about the new password. */
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
