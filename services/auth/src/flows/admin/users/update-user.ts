import type { Transaction } from 'kysely'
import { parseEmail } from '../../../adapters/mail/email-address.ts'
import { type Actor, type AuditLog, audit } from '../../../core/audit/audit.ts'
import {
  deleteProviderIdentities,
  endEntries,
  putAddressIdentity,
  setIdentityVerified,
} from '../../../core/identities/identities.store.ts'
import {
  type Channel,
  removalTraits,
  removeAddresses,
  requireOtherWayIn,
} from '../../../core/identities/remove-address.ts'
import type { WaysInDeps } from '../../../core/identities/ways-in.ts'
import { endSessionsOfApplications } from '../../../core/oauth-server/tokens/client-sessions.store.ts'
import { requireStrongPassword } from '../../../core/passwords/require-strong-password.ts'
import { endSessions } from '../../../core/sessions/end-sessions.store.ts'
import { endDevices } from '../../../core/trusted-devices/trusted-devices.store.ts'
import type { Address } from '../../../core/users/address.ts'
import { vouchFor } from '../../../core/users/address-claims.store.ts'
import { applyClaim } from '../../../core/users/address-claims.ts'
import { refuseTakenAddress } from '../../../core/users/addresses.store.ts'
import { changeUser, noRequest, type UserChanges } from '../../../core/users/change-user.store.ts'
import { displaceRegistrant } from '../../../core/users/displace-registrant.ts'
import { endTokens } from '../../../core/users/end-tokens.ts'
import { mergeAppMetadata, mergeUserMetadata, refreshProviders } from '../../../core/users/metadata.store.ts'
import { requireModestMetadata } from '../../../core/users/metadata.ts'
import { parsePhone } from '../../../core/users/phone-number.ts'
import { isPending, withoutFacts } from '../../../core/users/proven-addresses.ts'
import { dropAddress } from '../../../core/users/registrants.store.ts'
import {
  findUserById,
  type LockedAccount,
  lockAndReadUser,
  setPassword,
  type User,
} from '../../../core/users/users.store.ts'
import type { DB } from '../../../db/tables.ts'
import { NIL_UUID } from '../../../db/uuid.ts'
import { apiError } from '../../../errors.ts'
import { bannedUntil } from './ban-duration.ts'
import { putIdentity, refuseTaken, type UserAdminDeps } from './create-user.ts'
import { parseName, type UserUpdate } from './user-input.ts'

interface CheckedUpdate extends UserUpdate {
  passwordHash: string | undefined
  /** null lifts a ban, undefined leaves it. */
  bannedUntil: Date | null | undefined
  /** Channels whose address is removed. */
  removed: readonly Channel[]
}

/** A locked user and the changes to it. */
interface Change {
  deps: UserAdminDeps
  trx: Transaction<DB>
  user: LockedAccount
  update: CheckedUpdate
  addresses: AddressUpdate[]
  now: Date
}

interface AddressUpdate {
  channel: Address['channel']
  /** The new address, where it differs from the user's. */
  value: string | undefined
  /** undefined: as before, for a new address too. */
  isConfirmed: boolean | undefined
}

/**
 * Changes a user at once, without any message. A new password ends all sessions. A new password, a new or removed
 * address and a confirmation end all one-time tokens and pending changes of address. A ban ends pending changes and
 * trusted devices; sessions stay but cannot be used. Throws user_not_found (404), validation_failed, weak_password,
 * email_exists, phone_exists, single_identity_not_deletable; precondition_failed unless the locked user is expected.
 */
export async function updateUser(
  deps: UserAdminDeps,
  log: AuditLog,
  actor: Actor,
  userId: string,
  update: UserUpdate,
  isExpected: (user: User) => boolean = () => true,
): Promise<User> {
  const checked = await checkUpdate(deps, userId, update)
  return deps.db.transaction().execute(async (trx) => {
    const now = deps.now()
    const found = await lockAndReadUser(trx, userId)
    if (!found) throw apiError('user_not_found', { status: 404, message: 'User not found' })
    if (found.deleted_at)
      throw apiError('validation_failed', { status: 422, message: 'A deleted user cannot be changed' })
    if (!isExpected(found)) throw apiError('precondition_failed')
    const user = await withoutRemoved(deps, trx, found, checked, now)
    // An admin's confirmation or password settles the owner of the address: no claim to it stays.
    const isVouchedFor = Boolean(checked.passwordHash || checked.email_confirm || checked.phone_confirm)
    if (isVouchedFor && user.claim && !user.confirmed_at) await applyClaim(trx, user, user.claim, now)
    const addresses = addressesOf(user, checked)
    const asked: Change = { deps, trx, user, update: checked, addresses, now }
    for (const { channel, value, isConfirmed } of addresses) {
      // Takes a confirmed address from an account that never proved it.
      if (value && isConfirmed) await displaceRegistrant(deps, trx, log, user, { channel, value }, actor)
    }
    const change = isVouchedFor || becomesPending(asked) ? await withoutUnproven(asked) : asked
    if (checked.passwordHash) {
      await setPassword(trx, userId, checked.passwordHash, now)
      // Before the addresses change: one whose assumed confirmation is taken back is not vouched for.
      await vouchFor(trx, userId)
      await endSessions(trx, userId)
    }
    await changeRow(change)
    await changeIdentities(change)
    if (isVouchedFor || change !== asked || addresses.some(({ value }) => value)) {
      await endTokens(trx, userId, 'all', now)
    } else if (checked.bannedUntil) await endTokens(trx, userId, 'changes', now)
    if (checked.bannedUntil) {
      await endDevices(trx, userId)
      await endSessionsOfApplications(trx, userId, 'ended_by_admin')
    }
    await changeMetadata(change)
    const updated = (await findUserById(trx, userId)) as User
    // Only the metadata of this request: an account with too much of the rest must stay changeable, to ban it for one.
    if (checked.user_metadata) requireModestMetadata(updated.user_metadata)
    if (checked.app_metadata) requireModestMetadata(updated.app_metadata)
    const traits = removalTraits(found, checked.removed)
    await audit(deps, trx, log, { action: 'user_modified', actor, target: updated, ...traits })
    return updated
  })
}

/** Makes all checks that need no lock on the user, in the order of contract/auth-core.md 11.18, then hashes. */
async function checkUpdate(deps: UserAdminDeps, userId: string, update: UserUpdate): Promise<CheckedUpdate> {
  const email = update.email ? parseEmail(update.email) : undefined
  const phone = update.phone ? parsePhone(update.phone) : undefined
  const ban = update.ban_duration ? bannedUntil(update.ban_duration, deps.now()) : undefined
  const { password } = update
  if (password === '') throw apiError('weak_password', { details: { weak_password: { reasons: ['length'] } } })
  if (password !== undefined) {
    await requireStrongPassword(deps, password, email ?? (await findUserById(deps.db, userId))?.email)
  }
  const role = parseName('role', update.role)
  const passwordHash = password === undefined ? undefined : await deps.passwords.hash(password)
  const removed = CHANNELS.filter((channel) => update[channel] === '')
  return { ...update, email, phone, role, bannedUntil: ban, passwordHash, removed }
}

const CHANNELS: readonly Channel[] = ['email', 'phone']

/** Removes addresses before anything else is changed, and returns the account as it is then. */
async function withoutRemoved(
  deps: WaysInDeps,
  trx: Transaction<DB>,
  user: LockedAccount,
  { removed, email, phone }: CheckedUpdate,
  now: Date,
): Promise<LockedAccount> {
  if (removed.length === 0) return user
  const given = { email, phone }
  await requireOtherWayIn(
    deps,
    trx,
    user,
    removed,
    CHANNELS.filter((channel) => given[channel]),
  )
  await removeAddresses(trx, user, removed, { exceptId: NIL_UUID, now })
  return (await lockAndReadUser(trx, user.id)) as LockedAccount
}

const addressesOf = (user: User, { email, phone, email_confirm, phone_confirm }: UserUpdate): AddressUpdate[] => [
  { channel: 'email', value: email === user.email ? undefined : email, isConfirmed: email_confirm },
  { channel: 'phone', value: phone === user.phone ? undefined : phone, isConfirmed: phone_confirm },
]

/** Reports whether the update takes back the confirmation by a setting that alone kept the account in use. */
const becomesPending = ({ user, addresses }: Change): boolean =>
  addresses.some(({ channel, isConfirmed }) => isConfirmed === false && user[`${channel}_assumed`]) &&
  addresses.every(({ channel, isConfirmed }) => isConfirmed === false || !user[`${channel}_confirmed_at`])

/**
 * Treats an admin's confirmation as the first proof of the account's address. An identity whose provider has not
 * verified the address may be a stranger's: it is removed. If a setting had confirmed the address, everything of the
 * registrant is removed, also when an admin takes that confirmation back. Accounts in use without any address stay as
 * they are. Returns the change with the account as it is then.
 */
async function withoutUnproven(change: Change): Promise<Change> {
  const { deps, trx, user, update, now } = change
  const isAssumed = user.email_assumed || user.phone_assumed
  if (isProven(user, 'email') || isProven(user, 'phone') || !(isPending(user) || isAssumed)) return change
  const hadProvider = await deleteProviderIdentities(trx, user.id, update.email ?? user.email)
  if (!hadProvider && !isAssumed) return change
  await endEntries(trx, user.id)
  if (isAssumed) await stripAssumed(change)
  if (user.email) {
    const data = { sub: user.id, email: user.email }
    const identity = { id: deps.newId(), userId: user.id, provider: 'email', providerId: user.id } as const
    await putAddressIdentity(trx, { ...identity, data, now })
  }
  return { ...change, user: (await lockAndReadUser(trx, user.id)) as LockedAccount }
}

const isProven = (user: LockedAccount, channel: Channel): boolean =>
  user[`${channel}_confirmed_at`] !== null && !user[`${channel}_assumed`]

/**
 * Removes what the registrant gave an account whose addresses a setting confirmed. A number beside the e-mail address
 * is dropped too unless the admin names it: the confirmation is for the owner of the e-mail address.
 */
async function stripAssumed({ trx, user: { id, email, phone }, update, now }: Change): Promise<void> {
  await applyClaim(trx, { id, email, phone }, { password_hash: null, data: {} }, now)
  if (email && phone && !update.phone && !update.phone_confirm) {
    await dropAddress(trx, id, { channel: 'phone', value: phone }, now)
  }
  // The admin's password confirms the address in place of the setting.
  if (update.passwordHash) await changeUser(trx, id, { email_assumed: false, phone_assumed: false }, now)
}

async function changeRow({ trx, user, update: { role, bannedUntil }, addresses, now }: Change): Promise<void> {
  const changes: UserChanges = {
    ...(role && { role }),
    ...(bannedUntil !== undefined && { banned_until: bannedUntil }),
  }
  for (const { channel, value, isConfirmed } of addresses) {
    if (value) await refuseTaken(trx, { channel, value }, user.aud, user.id)
    if (isConfirmed !== undefined && (value ?? user[channel])) {
      const confirmedAt = isConfirmed ? now : null
      Object.assign(changes, { [`${channel}_confirmed_at`]: confirmedAt, [`${channel}_assumed`]: false })
      if (isConfirmed) changes.is_anonymous = false
      // A proven address stays this account's and waits for another proof. One that was never proven stays a
      // registrant's.
      else if (isProven(user, channel)) Object.assign(changes, { [`${channel}_vouched`]: true })
    }
    // Ends the user's own pending change: its tokens belong to the old address. A new address inherits no proof.
    if (value) Object.assign(changes, { [channel]: value, [`${channel}_vouched`]: true, ...noRequest(channel) })
  }
  await changeUser(trx, user.id, changes, now).catch(refuseTakenAddress)
}

/**
 * Moves the identity to the new address, which is not verified by the old address's proof, and follows its
 * confirmation.
 */
async function changeIdentities({ deps, trx, user, addresses, now }: Change): Promise<void> {
  for (const { channel, value, isConfirmed } of addresses) {
    const current = user[channel]
    const hasIdentity = user.identities.some(({ provider }) => provider === channel)
    if (value || (current && isConfirmed === false && hasIdentity)) {
      const address = { channel, value: value ?? (current as string), isConfirmed: isConfirmed === true }
      await putIdentity(deps, trx, user.id, address, now)
    } else if (current && isConfirmed) await setIdentityVerified(trx, user.id, { channel, value: current }, now)
  }
}

async function changeMetadata({ trx, user, update, now }: Change): Promise<void> {
  if (update.email_confirm && (update.email || user.email)) {
    await mergeUserMetadata(trx, user.id, { email_verified: true }, now)
  }
  if (update.app_metadata) await mergeAppMetadata(trx, user.id, update.app_metadata, now)
  if (update.user_metadata) await mergeUserMetadata(trx, user.id, withoutFacts(update.user_metadata), now)
  // Last: the list of providers is a fact, whatever an admin's form sends back.
  await refreshProviders(trx, user.id, now)
}
