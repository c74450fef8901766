// Claims: password and metadata in requests for an unproven address. Any request may be a stranger's, so the proof of
// the address applies only values on which all agree. Tests: ../../../test/claims.test.ts.
import { createHmac, hash, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Kysely, Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { Claim, DB } from '../../db/tables.ts'
import type { Passwords } from '../passwords/hash-password.ts'
import type { Address } from './address.ts'
import {
  type AddressClaim,
  findPasswordTag,
  narrowClaims,
  putAddressClaim,
  replaceRegistered,
} from './address-claims.store.ts'
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

/** Key of an address's claims: the same in all audiences. */
const keyOf = (codeKey: KeyObject, { channel, value }: Address): Buffer =>
  createHmac('sha256', codeKey).update(`claim\0${channel}\0${value}`).digest()

const tagOf = (passwordHash: string | null): Buffer => hash('sha256', passwordHash ?? '', 'buffer')

/** RFC 9106 3.1. */
const SALT_BYTES = 16

/** One salt per address: repeated sign-ups with one password give one hash. Only the key's owner can derive it. */
export const claimSalt = (codeKey: KeyObject, { channel, value }: Address): Buffer =>
  createHmac('sha256', codeKey).update(`sign-up\0${channel}\0${value}`).digest().subarray(0, SALT_BYTES)

/**
 * Whether a sign-up for the address, the latest claim, chose this password and waits for its proof. The answer is the
 * same whether or not the address has an account: a claim is kept for both.
 */
export async function isClaimedPassword(
  {
    db,
    codeKey,
    now,
    passwords,
  }: { db: Kysely<DB>; codeKey: KeyObject; now: () => Date; passwords: Pick<Passwords, 'hash'> },
  address: Address,
  password: string,
): Promise<boolean> {
  const tag = await findPasswordTag(db, keyOf(codeKey, address), now())
  if (!tag || tag.equals(tagOf(null))) return false
  return timingSafeEqual(tag, tagOf(await passwords.hash(password, claimSalt(codeKey, address))))
}

export function claimOf(
  { config, codeKey, now }: ClaimDeps,
  { address, passwordHash, data }: Pick<AddressClaim, 'address' | 'passwordHash' | 'data'>,
): AddressClaim {
  const { codeLifetimeSeconds } = address.channel === 'email' ? config.mail : config.sms
  const time = now()
  return {
    address,
    key: keyOf(codeKey, address),
    passwordHash,
    passwordTag: tagOf(passwordHash),
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
