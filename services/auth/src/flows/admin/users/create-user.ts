// The admin API and the `users` commands: creating, changing, banning, deleting and listing users, invitations and
// links. Each change is audited in its transaction, under the actor, which is an admin (../../http/admin-only.ts) or
// the command line. Tests: here, test/admin-namespace.test.ts, test/cli-users.test.ts.
import type { Kysely, Transaction } from 'kysely'
import { parseEmail } from '../../../adapters/mail/email-address.ts'
import { type Actor, type AuditLog, audit } from '../../../core/audit/audit.ts'
import { putAddressIdentity } from '../../../core/identities/identities.store.ts'
import { blankUser } from '../../../core/identities/new-account.ts'
import { isSupportedHash } from '../../../core/passwords/imported-hash.ts'
import { MAX_PASSWORD_BYTES } from '../../../core/passwords/password-rules.ts'
import { whyRefused } from '../../../core/passwords/refused-hash.ts'
import type { Address } from '../../../core/users/address.ts'
import { refuseTakenEmail, refuseTakenPhone } from '../../../core/users/addresses.store.ts'
import { displaceRegistrant } from '../../../core/users/displace-registrant.ts'
import { requireModestMetadata } from '../../../core/users/metadata.ts'
import { parsePhone } from '../../../core/users/phone-number.ts'
import { withoutFacts } from '../../../core/users/proven-addresses.ts'
import { findRegistrantId } from '../../../core/users/registrants.store.ts'
import { findUserById, insertUser, type User } from '../../../core/users/users.store.ts'
import type { DB, Metadata } from '../../../db/tables.ts'
import { NIL_UUID, UUID } from '../../../db/uuid.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { bannedUntil } from './ban-duration.ts'
import { type NewUser, parseName } from './user-input.ts'

export type UserAdminDeps = Pick<Deps, 'config' | 'db' | 'leakedPasswords' | 'newId' | 'newRowId' | 'now' | 'passwords'>

/**
 * Creates a user without mail, without a rule on the password's strength and regardless of the settings of sign-up. An
 * address that the admin confirms is taken from an account that never proved it; unconfirmed, it counts as taken by
 * that account. Throws validation_failed, email_exists, phone_exists, or user_already_exists (422) for the id. Order of
 * checks: contract/auth-core.md 11.16.
 */
export async function createUser(deps: UserAdminDeps, log: AuditLog, actor: Actor, input: NewUser): Promise<User> {
  const { user, passwordHash } = await checkNewUser(deps, input)
  return deps.db.transaction().execute(async (trx) => {
    const addresses = addressesOf(user)
    for (const address of addresses)
      if (address.isConfirmed) await displaceRegistrant(deps, trx, log, user, address, actor)
    const vouched = { email_vouched: user.email !== null, phone_vouched: user.phone !== null }
    if (!(await insertUser(trx, { ...user, ...vouched, password_hash: passwordHash }))) await explainConflict(trx, user)
    for (const address of addresses) await putIdentity(deps, trx, user.id, address, user.created_at)
    const provider = user.email ? 'email' : 'phone'
    await audit(deps, trx, log, { action: 'user_signedup', actor, target: user, traits: { provider } })
    return (await findUserById(trx, user.id)) as User
  })
}

/** Refuses and hashes before the transaction, which must not hold locks while hashing. */
async function checkNewUser(deps: UserAdminDeps, input: NewUser) {
  if (!input.email && !input.phone) {
    throw apiError('validation_failed', { message: 'Cannot create a user without either an email or phone' })
  }
  const aud = parseName('aud', input.aud) ?? deps.config.jwt.audience
  const email = input.email ? parseEmail(input.email) : null
  if (email) await refuseHeld(deps, aud, { channel: 'email', value: email, isConfirmed: input.email_confirm === true })
  const phone = input.phone ? parsePhone(input.phone) : null
  if (phone) await refuseHeld(deps, aud, { channel: 'phone', value: phone, isConfirmed: input.phone_confirm === true })
  checkPassword(input)
  const now = deps.now()
  const id = input.id === undefined ? deps.newId() : checkId(input.id)
  const role = parseName('role', input.role) ?? deps.config.jwt.defaultRole
  const providers = [...(email ? ['email'] : []), ...(phone ? ['phone'] : [])]
  const isEmailConfirmed = email !== null && input.email_confirm === true
  const user: User = {
    ...blankUser(id, aud, role, now),
    email,
    phone,
    email_confirmed_at: isEmailConfirmed ? now : null,
    phone_confirmed_at: phone && input.phone_confirm ? now : null,
    app_metadata: withoutNulls({ provider: providers[0], providers, ...input.app_metadata }),
    user_metadata: withoutNulls({
      ...withoutFacts(input.user_metadata ?? {}),
      ...(isEmailConfirmed ? { email_verified: true } : {}),
    }),
    banned_until: input.ban_duration ? bannedUntil(input.ban_duration, now) : null,
  }
  requireModestMetadata(user.user_metadata)
  requireModestMetadata(user.app_metadata)
  const passwordHash = input.password ? await deps.passwords.hash(input.password) : (input.password_hash ?? null)
  return { user, passwordHash }
}

type UserAddress = Address & { isConfirmed: boolean }

/** Refuses an address of another account; a confirmed one is refused only where that account has proven it. */
async function refuseHeld({ db }: UserAdminDeps, audience: string, address: UserAddress) {
  const registered = { address, audience, exceptId: NIL_UUID }
  await refuseTaken(db, address, audience, address.isConfirmed ? await findRegistrantId(db, registered) : undefined)
}

/** Throws email_exists or phone_exists when another account than `exceptId` has the address. */
export const refuseTaken = (db: Kysely<DB>, { channel, value }: Address, audience: string, exceptId?: string) =>
  (channel === 'email' ? refuseTakenEmail : refuseTakenPhone)(db, value, audience, exceptId)

const addressesOf = (user: User): UserAddress[] =>
  (['email', 'phone'] as const).flatMap((channel) => {
    const value = user[channel]
    return value ? [{ channel, value, isConfirmed: user[`${channel}_confirmed_at`] !== null }] : []
  })

function checkPassword({ password, password_hash: passwordHash }: NewUser): void {
  if (password !== undefined && passwordHash !== undefined) {
    throw apiError('validation_failed', { message: 'Only a password or a password hash should be provided' })
  }
  if (passwordHash !== undefined && !isSupportedHash(passwordHash)) {
    throw apiError('validation_failed', { message: `password_hash ${whyRefused(passwordHash)}` })
  }
  // Bounds the work of hashing, not the strength.
  if (Buffer.byteLength(password ?? '') > MAX_PASSWORD_BYTES) {
    throw apiError('validation_failed', { message: `Password cannot be longer than ${MAX_PASSWORD_BYTES} bytes` })
  }
}

function checkId(id: string): string {
  if (UUID.test(id) && id !== NIL_UUID) return id.toLowerCase()
  throw apiError('validation_failed', { message: 'The id must be a UUID, and not the nil UUID' })
}

const withoutNulls = (metadata: Metadata): Metadata =>
  Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== null))

/** Another request was faster: the rows that exist now say which value is taken. */
async function explainConflict(trx: Transaction<DB>, user: User): Promise<never> {
  for (const address of addressesOf(user)) await refuseTaken(trx, address, user.aud)
  if (await findUserById(trx, user.id)) {
    throw apiError('user_already_exists', { status: 422, message: 'A user with this id already exists' })
  }
  // Deleted again meanwhile: the next attempt finds everything free.
  throw apiError('service_unavailable', { retryAfterSeconds: 1 })
}

/** Adds the identity of an address, or moves it to the new address. */
export function putIdentity(
  deps: UserAdminDeps,
  trx: Transaction<DB>,
  userId: string,
  address: UserAddress,
  now: Date,
) {
  const { channel, value, isConfirmed } = address
  const data = { sub: userId, [channel]: value, [`${channel}_verified`]: isConfirmed }
  return putAddressIdentity(trx, { id: deps.newId(), userId, provider: channel, providerId: userId, data, now })
}
