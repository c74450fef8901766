// What a user changes about themselves. The one rule: all of a request happens or nothing. A new password ends every other
// session, every open one-time token and changes of address asked for before; a new address is only asked for here and
// becomes the user's in flows/verify/.
import type { Transaction } from 'kysely'
import type { SmsChannel } from '../../adapters/sms/gateway.ts'
import { type AuditLog, audit } from '../../core/audit/audit.ts'
import type { ActName } from '../../core/freshness/acts.ts'
import {
  changeTry,
  type GivenProof,
  requireFresh,
  requireSecondFactor,
  spendNonce,
} from '../../core/freshness/require-fresh.ts'
import { putProvenIdentity } from '../../core/identities/identities.store.ts'
import type { Pkce } from '../../core/one-time-tokens/pkce.ts'
import { notify, notifyPhoneChange } from '../../core/outbox/notify.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import { endSessions } from '../../core/sessions/end-sessions.store.ts'
import { lockSession } from '../../core/sessions/sessions.store.ts'
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
import { isHeldUnproven } from '../../core/users/unproven-holder.store.ts'
import { findUserById, lockUser, setPassword, touchUser, type User } from '../../core/users/users.store.ts'
import {
  askedAddresses,
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
  /** In lower case; undefined: unchanged. */
  email?: string | undefined
  /** Digits; undefined: unchanged. */
  phone?: string | undefined
  password?: string | undefined
  data?: Metadata | undefined
  appMetadata?: Metadata | undefined
  context: MailContext
  pkce?: Pkce | undefined
  smsChannel: SmsChannel
}

export async function updateAccount(
  deps: Deps,
  log: AuditLog,
  caller: LiveCaller,
  asked: AccountChanges,
): Promise<User> {
  const { user, session } = caller
  const proven = provenUser(user)
  const changes: AccountChanges = {
    ...asked,
    email: asked.email === proven.email ? undefined : asked.email,
    phone: asked.phone === proven.phone ? undefined : asked.phone,
    data: asked.data && withoutFacts(asked.data),
  }
  // Before anything is looked up: the answer tells whether an address is taken.
  if (changes.email || changes.phone) await deps.limits.addressChange(user.id)
  const acts = actsOf(changes)
  await checkChanges(deps, caller, acts, changes)
  return withChangesCounted(deps, user, addressesToProve(deps, user, changes), { userId: user.id }, async () => {
    // Last of all that may refuse, because its refusal tells of the password in use.
    const freshness = await requireFresh(deps, caller, acts, changes)
    const { password, clientAddress } = changes
    const passwordHash =
      password === undefined ? undefined : await hashNewPassword(deps, user, { password, clientAddress }, freshness)
    const updated = await deps.db.transaction().execute(async (trx) => {
      const now = deps.now()
      await lockUser(trx, user.id)
      // Hashing took its time: the session may have been ended meanwhile, by its owner's own password change.
      if (!(await lockSession(trx, session.id))) throw apiError('session_not_found')
      await spendNonce(trx, user.id, freshness)
      if (passwordHash) await changePassword(deps, trx, log, caller, passwordHash, changes)
      if (changes.data) await mergeUserMetadata(trx, user.id, changes.data, now)
      if (changes.appMetadata) await mergeAppMetadata(trx, user.id, changes.appMetadata, now)
      if (changes.email) await changeEmail(deps, trx, user, changes.email, changes)
      if (changes.phone) await changePhone(deps, trx, log, user, changes.phone, changes)
      await touchUser(trx, user.id, now)
      await audit(deps, trx, log, { action: 'user_modified', actor: user })
      const updated = await findUserById(trx, user.id)
      if (!updated) throw apiError('user_not_found')
      if (changes.data) requireModestMetadata(updated.user_metadata)
      if (changes.appMetadata) requireModestMetadata(updated.app_metadata)
      return updated
    })
    if (passwordHash) await deps.limits.forgetPasswordTries(changeTry(user, changes.clientAddress))
    return updated
  })
}

/** Lists the changes that need more than a live session. */
function actsOf({ password, email, phone, appMetadata }: AccountChanges): ActName[] {
  const asked: Partial<Record<ActName, boolean>> = {
    'new password': password !== undefined,
    'new e-mail address': email !== undefined,
    'new number': phone !== undefined,
    'own app_metadata': appMetadata !== undefined,
  }
  return (Object.keys(asked) as ActName[]).filter((act) => asked[act])
}

/** The new addresses that become the user's only when whoever has them agrees. */
function addressesToProve(deps: Deps, user: User, { email, phone }: AccountChanges): Address[] {
  const wanted: Address[] = []
  if (email && !changesEmailAtOnce(deps, user)) wanted.push({ channel: 'email', value: email })
  if (phone && !deps.config.sms.autoconfirm) wanted.push({ channel: 'phone', value: phone })
  return wanted
}

/** Everything that can be refused before a message is counted, in the order of contract/auth-core.md 11.11. */
async function checkChanges(
  deps: Deps,
  { user, session }: LiveCaller,
  acts: readonly ActName[],
  changes: AccountChanges,
): Promise<void> {
  const { password, data, appMetadata } = changes
  if (password !== undefined) await requireFitPassword(deps, password, changes.email ?? user.email)
  if (appMetadata && user.role !== deps.config.jwt.adminGroup) throw apiError('not_admin')
  requireSecondFactor(deps.config, acts, user, session)
  if (password !== undefined) requireAddressForPassword(user, changes)
  // Before it is told whether an address is taken.
  requireAuthorized(deps, askedAddresses(deps, user, addressesToProve(deps, user, changes)))
  if (changes.email && !(await canBeProven(deps, user, { channel: 'email', value: changes.email }))) {
    await refuseTakenEmail(deps.db, changes.email, user.aud, user.id)
  }
  if (changes.phone && !(await canBeProven(deps, user, { channel: 'phone', value: changes.phone }))) {
    await refuseTakenPhone(deps.db, changes.phone, user.aud, user.id)
  }
  if (data) requireModestMetadata(mergedMetadata(user.user_metadata, data))
  if (appMetadata) requireModestMetadata(mergedMetadata(user.app_metadata, appMetadata))
}

/** Whether the address is another account's that never proved it, and this user will have to: then it may become theirs. */
async function canBeProven(deps: Deps, user: User, address: Address): Promise<boolean> {
  const needsNoProof = address.channel === 'email' ? changesEmailAtOnce(deps, user) : deps.config.sms.autoconfirm
  return !needsNoProof && isHeldUnproven(deps.db, { address, audience: user.aud, exceptId: user.id })
}

/** An anonymous user gets the address at once where addresses need no proof; everybody else proves it first. */
const changesEmailAtOnce = ({ config }: Deps, user: User) => user.is_anonymous && config.mail.autoconfirm

async function changePassword(
  deps: Deps,
  trx: Transaction<DB>,
  log: AuditLog,
  { user, session }: LiveCaller,
  passwordHash: string,
  { context }: AccountChanges,
): Promise<void> {
  await setPassword(trx, user.id, passwordHash, deps.now())
  await endTokens(trx, user.id, 'all', deps.now())
  await endSessions(trx, user.id, 'others', session.id)
  await audit(deps, trx, log, { action: 'user_updated_password', actor: user })
  await notify(deps, trx, user, 'password_changed_notification', {}, context)
}

async function changeEmail(deps: Deps, trx: Transaction<DB>, user: User, email: string, order: AccountChanges) {
  const now = deps.now()
  if (changesEmailAtOnce(deps, user)) {
    await applyEmailChange(trx, user.id, email, 'assumed', now)
    await putProvenIdentity(trx, { id: deps.newId(), userId: user.id, provider: 'email', address: email, now })
    await refreshProviders(trx, user.id, now)
    return
  }
  await sendEmailChange(deps, trx, user, email, order)
}

async function changePhone(
  deps: Deps,
  trx: Transaction<DB>,
  log: AuditLog,
  user: User,
  phone: string,
  { smsChannel, context }: AccountChanges,
) {
  const now = deps.now()
  if (deps.config.sms.autoconfirm) {
    await applyPhoneChange(trx, user.id, phone, 'assumed', now)
    const identity = { id: deps.newId(), userId: user.id, provider: 'phone', address: phone, now } as const
    const isNew = await putProvenIdentity(trx, identity)
    await refreshProviders(trx, user.id, now)
    await audit(deps, trx, log, { action: 'user_modified', actor: user })
    await notifyPhoneChange(deps, trx, user, phone, isNew, context.acceptLanguage)
    return
  }
  await sendPhoneChange(deps, trx, user, phone, smsChannel)
}
