// Changes of the signed-in user to their own account. A request changes everything or nothing. A new password ends all
// other sessions, one-time tokens and pending changes of address; a new address waits for its proof in ../verify/.
// Tests: here, test/contract/account.test.ts, test/stolen-session.test.ts.
import type { Transaction } from 'kysely'
import type { SmsChannel } from '../../adapters/sms/gateway.ts'
import { type AuditLog, audit } from '../../core/audit/audit.ts'
import type { ActName } from '../../core/freshness/acts.ts'
import {
  changeAttempt,
  type GivenProof,
  requireFresh,
  requireSecondFactor,
  spendNonce,
} from '../../core/freshness/require-fresh.ts'
import { putProvenIdentity } from '../../core/identities/identities.store.ts'
import {
  type Channel,
  heldAmong,
  removalTraits,
  removeAddresses,
  requireOtherWayIn,
} from '../../core/identities/remove-address.ts'
import type { Pkce } from '../../core/one-time-tokens/pkce.ts'
import { notify, notifyPhoneChange } from '../../core/outbox/notify.ts'
import { type LiveCaller, withLockedCaller } from '../../core/sessions/caller.ts'
import { endSessions } from '../../core/sessions/end-sessions.store.ts'
import type { Address } from '../../core/users/address.ts'
import {
  applyEmailChange,
  applyPhoneChange,
  refuseTakenEmail,
  refuseTakenPhone,
} from '../../core/users/addresses.store.ts'
import { endTokens } from '../../core/users/end-tokens.ts'
import { mergeAppMetadata, mergeUserMetadata, refreshProviders } from '../../core/users/metadata.store.ts'
import { mergedMetadata, requireModestMetadata } from '../../core/users/metadata.ts'
import { provenUser, withoutFacts } from '../../core/users/proven-addresses.ts'
import { hasRegistrant } from '../../core/users/registrants.store.ts'
import { findUserById, type LockedAccount, setPassword, touchUser, type User } from '../../core/users/users.store.ts'
import {
  addressesToAgree,
  sendEmailChange,
  sendPhoneChange,
  withChangesCounted,
} from '../../core/verification-messages/address-change.ts'
import type { MailContext } from '../../core/verification-messages/link-mail.ts'
import { requireAuthorized } from '../../core/verification-messages/message-budget.ts'
import type { DB, Metadata } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { hashNewPassword, requireAddressForPassword, requireFitPassword } from './new-password.ts'

export interface AccountChanges extends GivenProof {
  log: AuditLog
  /** Lower case; undefined: unchanged. */
  email?: string | undefined
  /** Digits; undefined: unchanged. */
  phone?: string | undefined
  /** Channels whose address, or its pending change, is removed. */
  removed: readonly Channel[]
  password?: string | undefined
  data?: Metadata | undefined
  appMetadata?: Metadata | undefined
  context: MailContext
  pkce?: Pkce | undefined
  smsChannel: SmsChannel
}

export async function updateAccount(deps: Deps, caller: LiveCaller, input: AccountChanges): Promise<User> {
  const { user } = caller
  const proven = provenUser(user)
  const changes: AccountChanges = {
    ...input,
    email: input.email === proven.email ? undefined : input.email,
    phone: input.phone === proven.phone ? undefined : input.phone,
    data: input.data && withoutFacts(input.data),
  }
  // Before any look-up: the answer reveals whether an address is taken.
  if (changes.email || changes.phone) await deps.limits.addressChange(user.id)
  const acts = actsOf(user, changes)
  await checkChanges(deps, caller, acts, changes)
  return withChangesCounted(deps, user, addressesToProve(deps, user, changes), { userId: user.id }, async () => {
    // Last, because its refusal reveals the current password.
    const freshness = await requireFresh(deps, caller, acts, changes)
    const passwordHash = await hashNewPassword(deps, user, changes, freshness)
    // Hashing is slow: meanwhile the session may have ended, or lost the second factor that raised it.
    const updated = await withLockedCaller(deps, caller, async (trx, locked) => {
      const now = deps.now()
      requireSecondFactor(deps, acts, locked.user, locked.session)
      await spendNonce(trx, user.id, freshness)
      if (passwordHash) await changePassword(deps, trx, caller, passwordHash, changes)
      if (changes.data) await mergeUserMetadata(trx, user.id, changes.data, now)
      if (changes.appMetadata) await mergeAppMetadata(trx, user.id, changes.appMetadata, now)
      if (changes.removed.length > 0) await remove(deps, trx, { ...caller, user: locked.user }, changes)
      for (const address of newAddresses(changes)) await changeAddress(deps, trx, caller, address, changes)
      await touchUser(trx, user.id, now)
      const traits = removalTraits(locked.user, changes.removed)
      await audit(deps, trx, changes.log, { action: 'user_modified', actor: user, ...traits })
      const updated = await findUserById(trx, user.id)
      if (!updated) throw apiError('user_not_found')
      if (changes.data) requireModestMetadata(updated.user_metadata)
      if (changes.appMetadata) requireModestMetadata(updated.app_metadata)
      return updated
    })
    if (passwordHash) await deps.passwordAttempts.forget(changeAttempt(user, changes.clientAddress))
    return updated
  })
}

function actsOf(user: User, { password, email, phone, removed, appMetadata }: AccountChanges): ActName[] {
  const isIncluded: Partial<Record<ActName, boolean>> = {
    'new password': password !== undefined,
    'new e-mail address': email !== undefined,
    'new number': phone !== undefined,
    'removing an address': heldAmong(user, removed).length > 0,
    'own app_metadata': appMetadata !== undefined,
  }
  return (Object.keys(isIncluded) as ActName[]).filter((act) => isIncluded[act])
}

const newAddresses = ({ email, phone }: AccountChanges): Address[] => [
  ...(email ? [{ channel: 'email', value: email } as const] : []),
  ...(phone ? [{ channel: 'phone', value: phone } as const] : []),
]

/** Only an anonymous user gets an e-mail address without proof, and only where mail is confirmed automatically. */
const needsProof = ({ config: { mail, sms } }: Deps, user: User, { channel }: Address): boolean =>
  channel === 'email' ? !(user.is_anonymous && mail.autoconfirm) : !sms.autoconfirm

const addressesToProve = (deps: Deps, user: User, changes: AccountChanges): Address[] =>
  newAddresses(changes).filter((address) => needsProof(deps, user, address))

/** Makes every check that precedes the count of a message, in the order of contract/auth-core.md 11.11. */
async function checkChanges(
  deps: Deps,
  { user, session }: LiveCaller,
  acts: readonly ActName[],
  changes: AccountChanges,
): Promise<void> {
  const { password, data, appMetadata } = changes
  if (password !== undefined) await requireFitPassword(deps, password, changes.email ?? user.email)
  if (appMetadata && user.role !== deps.config.jwt.adminGroup) throw apiError('not_admin')
  requireSecondFactor(deps, acts, user, session)
  if (password !== undefined) requireAddressForPassword(user, changes.email || changes.phone)
  // Before the answer reveals whether an address is taken.
  requireAuthorized(deps, addressesToAgree(deps, user, addressesToProve(deps, user, changes)))
  for (const address of newAddresses(changes)) {
    if (await canBeProven(deps, user, address)) continue
    const refuseTaken = address.channel === 'email' ? refuseTakenEmail : refuseTakenPhone
    await refuseTaken(deps.db, address.value, user.aud, user.id)
  }
  if (data) requireModestMetadata(mergedMetadata(user.user_metadata, data))
  if (appMetadata) requireModestMetadata(mergedMetadata(user.app_metadata, appMetadata))
}

/** Reports whether the account with the address never proved it and this user has to: then it may become theirs. */
const canBeProven = async (deps: Deps, user: User, address: Address): Promise<boolean> =>
  needsProof(deps, user, address) && hasRegistrant(deps.db, { address, audience: user.aud, exceptId: user.id })

async function changePassword(
  deps: Deps,
  trx: Transaction<DB>,
  { user, session }: LiveCaller,
  passwordHash: string,
  { log, context }: AccountChanges,
): Promise<void> {
  await setPassword(trx, user.id, passwordHash, deps.now())
  await endTokens(trx, user.id, 'all', deps.now())
  await endSessions(trx, user.id, session.id)
  await audit(deps, trx, log, { action: 'user_updated_password', actor: user })
  await notify(deps, trx, user, 'password_changed_notification', {}, context)
}

/** Removes addresses. The removed e-mail address is always notified: a thief may have removed it. */
async function remove(
  deps: Deps,
  trx: Transaction<DB>,
  { user, session }: Omit<LiveCaller, 'user'> & { user: LockedAccount },
  changes: AccountChanges,
): Promise<void> {
  const { removed, context } = changes
  const appliedAtOnce = newAddresses(changes).filter((address) => !needsProof(deps, user, address))
  await requireOtherWayIn(
    deps,
    trx,
    user,
    removed,
    appliedAtOnce.map(({ channel }) => channel),
  )
  const now = deps.now()
  await removeAddresses(trx, user, removed, { exceptId: session.id, now })
  await refreshProviders(trx, user.id, now)
  for (const channel of heldAmong(user, removed)) {
    const always = channel === 'email' && user.email_confirmed_at !== null && !user.email_assumed
    const how = { acceptLanguage: context.acceptLanguage, always }
    await notify(deps, trx, user, 'identity_unlinked_notification', { Provider: channel }, how)
  }
}

async function changeAddress(
  deps: Deps,
  trx: Transaction<DB>,
  { user, session }: LiveCaller,
  address: Address,
  changes: AccountChanges,
): Promise<void> {
  const { channel, value } = address
  if (needsProof(deps, user, address)) {
    const sessionId = session.id
    if (channel === 'email') return sendEmailChange(deps, trx, user, value, { ...changes, sessionId })
    return sendPhoneChange(deps, trx, user, value, { channel: changes.smsChannel, sessionId })
  }
  const now = deps.now()
  await (channel === 'email' ? applyEmailChange : applyPhoneChange)(trx, user.id, value, 'assumed', now)
  const identity = { id: deps.newId(), userId: user.id, provider: channel, address: value, now }
  const isNew = await putProvenIdentity(trx, identity)
  await refreshProviders(trx, user.id, now)
  if (channel === 'email') return
  await audit(deps, trx, changes.log, { action: 'user_modified', actor: user })
  await notifyPhoneChange(deps, trx, user, value, isNew, changes.context.acceptLanguage)
}
