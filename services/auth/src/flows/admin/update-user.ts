import type { Transaction } from 'kysely'
import { parseEmail } from '../../adapters/mail/email-address.ts'
import { type Actor, type AuditLog, audit } from '../../core/audit/audit.ts'
import {
  deleteProviderIdentities,
  endEntries,
  putAddressIdentity,
  setIdentityVerified,
} from '../../core/identities/identities.store.ts'
import { requireStrongPassword } from '../../core/passwords/require-strong-password.ts'
import { endSessions } from '../../core/sessions/end-sessions.store.ts'
import type { Address } from '../../core/users/address.ts'
import { refuseTakenAddress, refuseTakenEmail, refuseTakenPhone } from '../../core/users/addresses.store.ts'
import { changeUser, type UserChanges } from '../../core/users/change-user.store.ts'
import { vouchFor } from '../../core/users/claims.store.ts'
import { applyClaim } from '../../core/users/claims.ts'
import { displaceHolder } from '../../core/users/displace-holder.ts'
import { endTokens } from '../../core/users/end-tokens.ts'
import { mergeAppMetadata, mergeUserMetadata, refreshProviders } from '../../core/users/metadata.store.ts'
import { requireModestMetadata } from '../../core/users/metadata.ts'
import { parsePhone } from '../../core/users/phone-number.ts'
import { isPending, withoutFacts } from '../../core/users/proven-addresses.ts'
import { dropAddress } from '../../core/users/unproven-holder.store.ts'
import {
  findUserById,
  type LockedAccount,
  lockAndReadUser,
  setPassword,
  type User,
} from '../../core/users/users.store.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { bannedUntil } from './ban-duration.ts'
import type { UserAdminDeps } from './create-user.ts'
import type { UserUpdate } from './user-fields.ts'
import { parseName } from './user-input.ts'

interface CheckedUpdate extends UserUpdate {
  passwordHash: string | undefined
  /** null lifts a ban, undefined leaves it. */
  bannedUntil: Date | null | undefined
}

interface AddressUpdate {
  channel: Address['channel']
  /** The new address, where it differs from the user's. */
  value: string | undefined
  /** Only true has an effect: a confirmation cannot be taken back. */
  isConfirmed: boolean
}

/**
 * Changes a user at once, without any message. A new password ends all sessions; a new password, address or confirmation
 * ends all one-time tokens and pending changes of address. A ban ends pending changes too; sessions stay but cannot be used.
 * Throws user_not_found (404), validation_failed, weak_password, email_exists, phone_exists.
 */
export async function updateUser(
  deps: UserAdminDeps,
  log: AuditLog,
  actor: Actor,
  userId: string,
  update: UserUpdate,
): Promise<User> {
  const checked = await checkUpdate(deps, userId, update)
  return deps.db.transaction().execute(async (trx) => {
    const now = deps.now()
    const user = await lockAndReadUser(trx, userId)
    if (!user) throw apiError('user_not_found', { status: 404, message: 'User not found' })
    if (user.deleted_at)
      throw apiError('validation_failed', { status: 422, message: 'A deleted user cannot be changed' })
    // An admin's confirmation or password settles who owns the address: no claim to it stays.
    const isVouchedFor = Boolean(checked.passwordHash || checked.emailConfirm || checked.phoneConfirm)
    if (isVouchedFor && user.claim && !user.confirmed_at) await applyClaim(trx, user, user.claim, now)
    const addresses = addressesOf(user, checked)
    for (const { channel, value, isConfirmed } of addresses) {
      // Takes a confirmed address from an account that never proved it.
      if (value && isConfirmed) await displaceHolder(deps, trx, log, user, { channel, value }, actor)
    }
    if (isVouchedFor) await endUnprovenEntries(deps, trx, user, checked, now)
    await changeRow(trx, user, checked, addresses, now)
    await changeIdentities(deps, trx, user, addresses, now)
    if (checked.passwordHash) {
      await setPassword(trx, userId, checked.passwordHash, now)
      await vouchFor(trx, userId)
      await endSessions(trx, userId)
    }
    if (isVouchedFor || addresses.some(({ value }) => value)) {
      await endTokens(trx, userId, 'all', now)
    } else if (checked.bannedUntil) await endTokens(trx, userId, 'changes', now)
    await changeMetadata(trx, user, checked, now)
    const updated = (await findUserById(trx, userId)) as User
    // Only the metadata of this request: an account with too much of the rest must stay changeable, to ban it for one.
    if (checked.userMetadata) requireModestMetadata(updated.user_metadata)
    if (checked.appMetadata) requireModestMetadata(updated.app_metadata)
    await audit(deps, trx, log, { action: 'user_modified', actor, target: updated })
    return updated
  })
}

/**
 * Makes every check that needs no lock on the user, in the order of contract/auth-core.md 11.18, then hashes the
 * password.
 */
async function checkUpdate(deps: UserAdminDeps, userId: string, update: UserUpdate): Promise<CheckedUpdate> {
  const email = update.email ? parseEmail(update.email) : undefined
  const phone = update.phone ? parsePhone(update.phone) : undefined
  const ban = update.banDuration ? bannedUntil(update.banDuration, deps.now()) : undefined
  const { password } = update
  if (password === '') throw apiError('weak_password', { details: { weak_password: { reasons: ['length'] } } })
  if (password !== undefined) {
    await requireStrongPassword(deps, password, email ?? (await findUserById(deps.db, userId))?.email)
  }
  const role = parseName('role', update.role)
  const passwordHash = password === undefined ? undefined : await deps.passwords.hash(password)
  return { ...update, email, phone, role, bannedUntil: ban, passwordHash }
}

const addressesOf = (user: User, { email, phone, emailConfirm, phoneConfirm }: UserUpdate): AddressUpdate[] => [
  { channel: 'email', value: email === user.email ? undefined : email, isConfirmed: emailConfirm === true },
  { channel: 'phone', value: phone === user.phone ? undefined : phone, isConfirmed: phoneConfirm === true },
]

/**
 * Treats an admin's confirmation as the first proof of the account's address. An identity whose provider has not
 * verified the address may be a stranger's: it is removed. If a setting had confirmed the address, everything of the
 * registrant is removed. Accounts in use without any address stay as they are.
 */
async function endUnprovenEntries(
  deps: UserAdminDeps,
  trx: Transaction<DB>,
  user: LockedAccount,
  update: CheckedUpdate,
  now: Date,
): Promise<void> {
  const isProven = (user.email_confirmed_at && !user.email_assumed) || (user.phone_confirmed_at && !user.phone_assumed)
  const isAssumed = user.email_assumed || user.phone_assumed
  if (isProven || !(isPending(user) || isAssumed)) return
  const hadProvider = await deleteProviderIdentities(trx, user.id, update.email ?? user.email)
  if (!hadProvider && !isAssumed) return
  await endEntries(trx, user.id)
  if (isAssumed) await stripAssumed(trx, user, update, now)
  if (!user.email) return
  const data = { sub: user.id, email: user.email }
  const identity = { id: deps.newId(), userId: user.id, provider: 'email', providerId: user.id } as const
  await putAddressIdentity(trx, { ...identity, data, now })
}

/**
 * Removes what the registrant gave an account whose addresses a setting confirmed. A number beside the e-mail address is
 * dropped too unless the admin names it: the confirmation is for the owner of the e-mail address.
 */
async function stripAssumed(trx: Transaction<DB>, user: LockedAccount, update: CheckedUpdate, now: Date) {
  const { id, email, phone } = user
  await applyClaim(trx, { id, email, phone }, { password_hash: null, data: {} }, now)
  if (email && phone && !update.phone && !update.phoneConfirm) {
    await dropAddress(trx, id, { channel: 'phone', value: phone }, now)
  }
  // The admin's password confirms the address in place of the setting.
  if (update.passwordHash) await changeUser(trx, id, { email_assumed: false, phone_assumed: false }, now)
}

async function changeRow(
  trx: Transaction<DB>,
  user: User,
  { role, bannedUntil }: CheckedUpdate,
  addresses: AddressUpdate[],
  now: Date,
): Promise<void> {
  const changes: UserChanges = {
    ...(role && { role }),
    ...(bannedUntil !== undefined && { banned_until: bannedUntil }),
  }
  for (const { channel, value, isConfirmed } of addresses) {
    if (value) await (channel === 'email' ? refuseTakenEmail : refuseTakenPhone)(trx, value, user.aud, user.id)
    if (isConfirmed && (value ?? user[channel])) {
      Object.assign(changes, { [`${channel}_confirmed_at`]: now, [`${channel}_assumed`]: false, is_anonymous: false })
    }
    // Ends the user's own pending change: its tokens belong to the old address. A new address inherits no proof.
    if (value) Object.assign(changes, { [channel]: value, [`${channel}_vouched`]: true, ...NO_CHANGE[channel] })
  }
  await changeUser(trx, user.id, changes, now).catch(refuseTakenAddress)
}

const NO_CHANGE = {
  email: { email_change: null, email_change_sent_at: null, email_change_confirm_status: 0 },
  phone: { phone_change: null, phone_change_sent_at: null },
}

/** Moves the identity to the new address, which is not verified by the old address's proof. */
async function changeIdentities(
  deps: UserAdminDeps,
  trx: Transaction<DB>,
  user: User,
  addresses: AddressUpdate[],
  now: Date,
): Promise<void> {
  for (const { channel, value, isConfirmed } of addresses) {
    const current = user[channel]
    if (value) {
      const data = { sub: user.id, [channel]: value, [`${channel}_verified`]: isConfirmed }
      const identity = { id: deps.newId(), userId: user.id, provider: channel, providerId: user.id, data, now }
      await putAddressIdentity(trx, identity)
    } else if (current && isConfirmed) {
      await setIdentityVerified(trx, user.id, { channel, value: current }, now)
    }
  }
}

async function changeMetadata(trx: Transaction<DB>, user: User, update: CheckedUpdate, now: Date): Promise<void> {
  if (update.emailConfirm && (update.email || user.email)) {
    await mergeUserMetadata(trx, user.id, { email_verified: true }, now)
  }
  if (update.appMetadata) await mergeAppMetadata(trx, user.id, update.appMetadata, now)
  if (update.userMetadata) await mergeUserMetadata(trx, user.id, withoutFacts(update.userMetadata), now)
  // Last: the list of providers is a fact, whatever an admin's form sends back.
  await refreshProviders(trx, user.id, now)
}
