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
import type { DB, Metadata } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { bannedUntil } from './ban-duration.ts'
import type { UserAdminDeps } from './create-user.ts'
import { parseName } from './user-input.ts'

/** What an admin changes about a user; absent, or "" but for the password, means unchanged. */
export interface UserUpdate {
  role?: string | undefined
  email?: string | undefined
  phone?: string | undefined
  /** "" is refused as too weak. */
  password?: string | undefined
  /** Only true has an effect: nothing is ever un-confirmed. */
  emailConfirm?: boolean | undefined
  phoneConfirm?: boolean | undefined
  userMetadata?: Metadata | undefined
  appMetadata?: Metadata | undefined
  /** See bannedUntil. */
  banDuration?: string | undefined
}

interface CheckedUpdate extends UserUpdate {
  passwordHash: string | undefined
  /** null lifts a ban, undefined leaves it as it is. */
  bannedUntil: Date | null | undefined
}

/**
 * Changes a user at once: nothing is sent and nobody is asked. A new password ends all sessions; a new password, address
 * or confirmation ends all open one-time tokens and changes of address under way. A ban ends such changes too and leaves
 * sessions alone, it stops them from being used. Throws user_not_found (404), validation_failed, weak_password, email_exists,
 * phone_exists.
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
    // An admin's confirmation or password ends the dispute about the address: no claim to it stays.
    const isVouchedFor = Boolean(checked.passwordHash || checked.emailConfirm || checked.phoneConfirm)
    if (isVouchedFor && user.claim && !user.confirmed_at) await applyClaim(trx, user, user.claim, now)
    await displaceHolders(deps, trx, log, actor, user, checked)
    if (isVouchedFor) await endUnprovenEntries(deps, trx, user, checked, now)
    await changeRow(trx, user, checked, now)
    await changeIdentities(deps, trx, user, checked, now)
    if (checked.passwordHash) {
      await setPassword(trx, userId, checked.passwordHash, now)
      await vouchFor(trx, userId)
      await endSessions(trx, userId)
    }
    if (checked.passwordHash || changesAddress(user, checked) || checked.emailConfirm || checked.phoneConfirm) {
      await endTokens(trx, userId, 'all', now)
    } else if (checked.bannedUntil) await endTokens(trx, userId, 'changes', now)
    await changeMetadata(trx, user, checked, now)
    const updated = (await findUserById(trx, userId)) as User
    // Only what this request has grown: an account must stay changeable, and be banned, however large the rest has become.
    if (checked.userMetadata) requireModestMetadata(updated.user_metadata)
    if (checked.appMetadata) requireModestMetadata(updated.app_metadata)
    await audit(deps, trx, log, { action: 'user_modified', actor, target: updated })
    return updated
  })
}

/** Everything that can be refused without the user, in the contract's order (11.18); the hash comes last. */
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

/** The address an update brings, if it is another than the user has. */
const newEmail = (user: User, { email }: UserUpdate) => (email && email !== user.email ? email : undefined)
const newPhone = (user: User, { phone }: UserUpdate) => (phone && phone !== user.phone ? phone : undefined)
const changesAddress = (user: User, update: UserUpdate) => Boolean(newEmail(user, update) || newPhone(user, update))

/** Takes an address that the admin confirms from an account that never proved it. */
async function displaceHolders(
  deps: UserAdminDeps,
  trx: Transaction<DB>,
  log: AuditLog,
  actor: Actor,
  user: User,
  update: CheckedUpdate,
): Promise<void> {
  const email = update.emailConfirm && newEmail(user, update)
  const phone = update.phoneConfirm && newPhone(user, update)
  if (email) await displaceHolder(deps, trx, log, user, { channel: 'email', value: email }, actor)
  if (phone) await displaceHolder(deps, trx, log, user, { channel: 'phone', value: phone }, actor)
}

/**
 * Treats an admin's word as the first proof of the account's address. An account at a provider that has not verified it may be a
 * stranger's and is no way in any more. Where a setting confirmed the address, the account has been in use, and nothing of its
 * registrant stays. One in use without any address stays.
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
  const hadProvider = await deleteProviderIdentities(trx, user.id, newEmail(user, update) ?? user.email)
  if (!hadProvider && !isAssumed) return
  await endEntries(trx, user.id)
  if (isAssumed) await stripAssumed(trx, user, update, now)
  if (!user.email) return
  const data = { sub: user.id, email: user.email }
  const identity = { id: deps.newId(), userId: user.id, provider: 'email', providerId: user.id } as const
  await putAddressIdentity(trx, { ...identity, data, now })
}

/**
 * Leaves an account whose addresses a setting confirmed without what its registrant gave it. A number beside the e-mail address
 * goes too, unless the admin names it: the word is for the person behind the address.
 */
async function stripAssumed(trx: Transaction<DB>, user: LockedAccount, update: CheckedUpdate, now: Date) {
  const { id, email, phone } = user
  await applyClaim(trx, { id, email, phone }, { password_hash: null, data: {} }, now)
  if (email && phone && !update.phone && !update.phoneConfirm) {
    await dropAddress(trx, id, { channel: 'phone', value: phone }, now)
  }
  // The admin's password replaces the setting's word for the address.
  if (update.passwordHash) await changeUser(trx, id, { email_assumed: false, phone_assumed: false }, now)
}

async function changeRow(trx: Transaction<DB>, user: User, update: CheckedUpdate, now: Date): Promise<void> {
  const email = newEmail(user, update)
  const phone = newPhone(user, update)
  if (email) await refuseTakenEmail(trx, email, user.aud, user.id)
  if (phone) await refuseTakenPhone(trx, phone, user.aud, user.id)
  const changes: UserChanges = {}
  if (update.role) changes.role = update.role
  if (update.emailConfirm && (email ?? user.email))
    Object.assign(changes, { email_confirmed_at: now, email_assumed: false })
  if (update.phoneConfirm && (phone ?? user.phone))
    Object.assign(changes, { phone_confirmed_at: now, phone_assumed: false })
  // A change the user had begun is over: its tokens end with the address they were sent for. An address that replaces
  // an assumed one is unproven too.
  if (email) Object.assign(changes, { email, email_vouched: true, ...NO_EMAIL_CHANGE })
  if (phone) Object.assign(changes, { phone, phone_vouched: true, ...NO_PHONE_CHANGE })
  if (changes.email_confirmed_at || changes.phone_confirmed_at) changes.is_anonymous = false
  if (update.bannedUntil !== undefined) changes.banned_until = update.bannedUntil
  await changeUser(trx, user.id, changes, now).catch(refuseTakenAddress)
}

const NO_EMAIL_CHANGE = { email_change: null, email_change_sent_at: null, email_change_confirm_status: 0 }
const NO_PHONE_CHANGE = { phone_change: null, phone_change_sent_at: null }

/** The identity of an address follows it; what was verified of the old one says nothing of the new one. */
async function changeIdentities(
  deps: UserAdminDeps,
  trx: Transaction<DB>,
  user: User,
  update: CheckedUpdate,
  now: Date,
) {
  const { id: userId } = user
  const identity = { userId, providerId: userId, now }
  const email = newEmail(user, update)
  if (email) {
    const data = { sub: userId, email, email_verified: update.emailConfirm === true }
    await putAddressIdentity(trx, { ...identity, id: deps.newId(), provider: 'email', data })
  } else if (user.email && update.emailConfirm) {
    await setIdentityVerified(trx, userId, { channel: 'email', value: user.email }, now)
  }
  const phone = newPhone(user, update)
  if (phone) {
    const data = { sub: userId, phone, phone_verified: update.phoneConfirm === true }
    await putAddressIdentity(trx, { ...identity, id: deps.newId(), provider: 'phone', data })
  } else if (user.phone && update.phoneConfirm) {
    await setIdentityVerified(trx, userId, { channel: 'phone', value: user.phone }, now)
  }
}

async function changeMetadata(trx: Transaction<DB>, user: User, update: CheckedUpdate, now: Date): Promise<void> {
  if (update.emailConfirm && (update.email || user.email)) {
    await mergeUserMetadata(trx, user.id, { email_verified: true }, now)
  }
  if (update.appMetadata) await mergeAppMetadata(trx, user.id, update.appMetadata, now)
  if (update.userMetadata) await mergeUserMetadata(trx, user.id, withoutFacts(update.userMetadata), now)
  // After the caller's own keys: which providers there are is a fact, whatever an admin's form sends back.
  await refreshProviders(trx, user.id, now)
}
