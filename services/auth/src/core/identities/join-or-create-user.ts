// Identities: accounts at providers that users sign in with. An account joins a user because the provider has verified
// an address, never because it reported one (contract/auth-external.md 2.5). Tests: ../../flows/oauth/ and
// ../../../test/takeover.test.ts.
import type { Transaction } from 'kysely'
import { primaryEmail } from '../../adapters/oauth/clean-account.ts'
import type { DB } from '../../db/tables.ts'
import { NIL_UUID } from '../../db/uuid.ts'
import { apiError } from '../../errors.ts'
import { type AuditLog, audit } from '../audit/audit.ts'
import { hasVerifiedFactor } from '../factors/assurance.ts'
import type { Asking } from '../hooks/questions.ts'
import { notify } from '../outbox/notify.ts'
import { confirmAddress, findUserIdsByEmails } from '../users/addresses.store.ts'
import { changeUser, noAddress } from '../users/change-user.store.ts'
import { displace, isBannedInUse } from '../users/displace-registrant.ts'
import { endTokens } from '../users/end-tokens.ts'
import { isBanned } from '../users/is-banned.ts'
import { refreshProviders } from '../users/metadata.store.ts'
import { dropAddress, lockRegistrant, type Registrant, releaseAddress } from '../users/registrants.store.ts'
import { findUserById, insertUser, type LockedAccount, lockAndReadUser, type User } from '../users/users.store.ts'
import { type AdmitDeps, admitUser, announceUser } from './admit-user.ts'
import {
  type ExternalDeps,
  type ExternalSignIn,
  type ExternalUser,
  type Found,
  identityData,
  mergeIfItFits,
} from './external-account.ts'
import { findIdentity, forgetRegistrant, insertIdentity } from './identities.store.ts'
import { mayLink } from './linking-rules.ts'
import { blankUser, refuseVanishedAccount } from './new-account.ts'
import { signInAgain } from './sign-in-again.ts'

type Deps = Asking<ExternalDeps & AdmitDeps>

/**
 * Finds the user of a locked account at a provider: known, linked now, or new. `unproven`: an unknown account, of which
 * nothing is stored before its address is proven. Throws by the table of the contract.
 */
export async function findOrCreateExternalUser(
  deps: Deps,
  trx: Transaction<DB>,
  log: AuditLog,
  signIn: ExternalSignIn,
): Promise<ExternalUser | 'unproven'> {
  const { provider, account } = signIn
  const identity = await findIdentity(trx, provider.name, account.sub)
  if (!identity && (await awaitsProof(deps, trx, signIn))) return 'unproven'
  const found = await (identity ? signInAgain(deps, trx, log, signIn, identity) : joinOrCreate(deps, trx, log, signIn))
  await refreshProviders(trx, found.userId, deps.now())
  const user = (await findUserById(trx, found.userId)) as User
  if (found.isNew) {
    await audit(deps, trx, log, { action: 'user_signedup', actor: user, traits: { provider: provider.name } })
  }
  return { ...found, user }
}

/**
 * Reports whether a new account's address must be proven first. Only autoconfirm, which reveals accounts, reads the
 * users.
 */
async function awaitsProof(deps: Deps, trx: Transaction<DB>, { account, audience }: ExternalSignIn) {
  const { config } = deps
  const email = primaryEmail(account)
  if (!email || email.verified || config.external.allowUnverifiedEmail) return false
  if (config.signup.disabled) throw apiError('signup_disabled')
  if (!config.mail.autoconfirm) return true
  await releaseAddress(deps, trx, { channel: 'email', value: email.email }, audience)
  return (await findUserIdsByEmails(trx, [email.email], audience)).length > 0
}

async function joinOrCreate(deps: Deps, trx: Transaction<DB>, log: AuditLog, signIn: ExternalSignIn): Promise<Found> {
  const { provider, account, audience } = signIn
  const verified = account.emails.filter((email) => email.verified).map(({ email }) => email)
  for (const value of account.emails.map(({ email }) => email).toSorted()) {
    await releaseAddress(deps, trx, { channel: 'email', value }, audience)
  }
  const registrants = await lockRegistrants(deps, trx, audience, verified)
  const accountIds = verified.length > 0 ? await findUserIdsByEmails(trx, verified, audience) : []
  // A sign-up that commits between the two reads would look like a rightful owner.
  if (accountIds.length > 0 && (await lockRegistrants(deps, trx, audience, verified)).size !== registrants.size) {
    refuseVanishedAccount()
  }
  const [owner, another] = accountIds.filter((id) => !registrants.has(id))
  if (another) {
    throw apiError('conflict', {
      message: 'Multiple accounts with the same email address in the same linking domain detected: default',
    })
  }
  const preferred = primaryEmail(account)?.email
  const userId = owner ?? accountIds.find((id) => registrants.get(id)?.email === preferred) ?? accountIds[0]
  if (!userId) {
    const found = await createExternalUser(deps, trx, signIn)
    // Undefined: another request got the address meanwhile and is visible now.
    return found ?? joinOrCreate(deps, trx, log, signIn)
  }
  const registrant = registrants.get(userId)
  if (registrant && isBannedInUse(registrant, 'email', deps.now())) throw apiError('user_banned')
  // It never proved the address, so its prover is not banned.
  const isRegistrantBanned = isBanned({ banned_until: registrant?.banned_until ?? null }, deps.now())
  if (isRegistrantBanned || !(await mayLink(deps.config, trx, provider.settings.linking, owner))) {
    if (owner) throw apiError('email_exists')
    return createInsteadOf(deps, trx, log, signIn, registrants)
  }
  await link(deps, trx, log, signIn, { userId, registrants })
  return { userId, isNew: false }
}

/** Creates a user for an account at a provider. Undefined when another request got the address first. */
async function createExternalUser(deps: Deps, trx: Transaction<DB>, { provider, account, audience }: ExternalSignIn) {
  const { config } = deps
  if (config.signup.disabled) throw apiError('signup_disabled')
  const now = deps.now()
  const email = primaryEmail(account)
  const [takenBy] = email ? await findUserIdsByEmails(trx, [email.email], audience) : []
  if (takenBy && email?.verified) return undefined
  // Taken since `awaitsProof`.
  if (takenBy && !config.external.allowUnverifiedEmail) refuseVanishedAccount()
  // The user is admitted without the address, so that the answer does not reveal whether it is taken.
  const reportedEmail = config.external.allowUnverifiedEmail && !email?.verified ? email?.email : undefined
  const ownEmail = reportedEmail || takenBy ? undefined : email
  const isAssumed = ownEmail !== undefined && !ownEmail.verified && config.mail.autoconfirm
  const data = identityData(account, email)
  const id = deps.newId()
  const user = {
    ...blankUser(id, audience, config.jwt.defaultRole, now),
    email: ownEmail?.email ?? null,
    email_confirmed_at: ownEmail?.verified || isAssumed ? now : null,
    email_assumed: isAssumed,
    email_change: reportedEmail ?? null,
    email_change_sent_at: reportedEmail ? now : null,
    app_metadata: { provider: provider.name, providers: [provider.name] },
    user_metadata: data,
  }
  await admitUser(deps, trx, user)
  if (!(await insertUser(trx, user))) return undefined
  announceUser(deps, id)
  const identity = { id: deps.newId(), userId: id, provider: provider.name, providerId: account.sub, data, now }
  await insertIdentity(trx, identity)
  return { userId: id, isNew: true, reportedEmail }
}

/** Takes the addresses from registrants and creates an account. */
async function createInsteadOf(
  deps: Deps,
  trx: Transaction<DB>,
  log: AuditLog,
  signIn: ExternalSignIn,
  registrants: ReadonlyMap<string, Registrant>,
): Promise<Found> {
  const displaced = []
  for (const target of registrants.values())
    displaced.push({ target, action: await displaceFromEmail(deps, trx, target) })
  const found = (await createExternalUser(deps, trx, signIn)) ?? refuseVanishedAccount()
  const actor = (await findUserById(trx, found.userId)) as User
  for (const event of displaced) await audit(deps, trx, log, { ...event, actor })
  return found
}

const displaceFromEmail = (deps: Deps, trx: Transaction<DB>, registrant: Registrant) =>
  displace(trx, registrant, { channel: 'email', value: registrant.email ?? '' }, deps.now())

/**
 * Locks the accounts that have one of the addresses unproven, in the order of addresses against deadlocks. One with a
 * proven number belongs to its owner and only loses the address.
 */
async function lockRegistrants(deps: Deps, trx: Transaction<DB>, audience: string, addresses: readonly string[]) {
  const registrants = new Map<string, Registrant>()
  for (const value of addresses.toSorted()) {
    const address = { channel: 'email', value } as const
    const registrant = await lockRegistrant(trx, { address, audience, exceptId: NIL_UUID })
    if (!registrant) continue
    if (registrant.phone_confirmed_at && !registrant.phone_assumed) {
      await dropAddress(trx, registrant.id, address, deps.now())
      await refreshProviders(trx, registrant.id, deps.now())
    } else registrants.set(registrant.id, registrant)
  }
  return registrants
}

/**
 * Reports whether a second factor guards the user: a thief with the mailbox could otherwise link an account
 * permanently. Nothing is linked then, but the user is admitted at aal1: a refusal would lock out users who always sign
 * in by a verified address. They link it themselves, at aal2.
 */
export const isGuarded = (user: Pick<User, 'factors' | 'email_confirmed_at' | 'phone_confirmed_at'>): boolean =>
  hasVerifiedFactor(user) && Boolean(user.email_confirmed_at || user.phone_confirmed_at)

/**
 * Links the account to a user and displaces other registrants: an attacker could block the owner by registering two.
 */
async function link(
  deps: Deps,
  trx: Transaction<DB>,
  log: AuditLog,
  { provider, account, acceptLanguage }: ExternalSignIn,
  { userId, registrants }: { userId: string; registrants: ReadonlyMap<string, Registrant> },
): Promise<void> {
  const now = deps.now()
  const user = (await lockAndReadUser(trx, userId)) ?? refuseVanishedAccount()
  // The factor of a registrant without a proven address guards nothing.
  if (!registrants.has(userId) && isGuarded(user)) return
  const email = account.emails.find(({ email: address, verified }) => verified && address === user.email)
  const data = identityData(account, email ?? primaryEmail(account))
  const identityId = deps.newId()
  await insertIdentity(trx, { id: identityId, userId, provider: provider.name, providerId: account.sub, data, now })
  if (registrants.has(userId)) {
    await forgetRegistrant(trx, userId, { identityId, data, now })
    await changeUser(trx, userId, noAddress('phone'), now)
  } else {
    if (user.invited_at) await forgetPendingRegistrant(trx, user, identityId, now)
    await mergeIfItFits(trx, user, data, now)
  }
  if (email && (!user.email_confirmed_at || user.email_assumed)) {
    await endTokens(trx, userId, 'all', now)
    await confirmAddress(trx, userId, 'email', now)
  }
  for (const target of registrants.values()) {
    if (target.id === userId) continue
    const action = await displaceFromEmail(deps, trx, target)
    await audit(deps, trx, log, { action, actor: user, target })
  }
  await audit(deps, trx, log, { action: 'identity_linked', actor: user, traits: { provider: provider.name } })
  await notify(
    deps,
    trx,
    user,
    'identity_linked_notification',
    { Provider: provider.label ?? provider.name },
    { acceptLanguage },
  )
}

/** Removes the registrant's access if no address was proven; data of an admin's invitation stays. */
export async function forgetPendingRegistrant(
  trx: Transaction<DB>,
  user: LockedAccount,
  identityId: string,
  now: Date,
) {
  if (user.email_confirmed_at || user.phone_confirmed_at) return
  const data = user.email_vouched ? user.user_metadata : {}
  await forgetRegistrant(trx, user.id, { identityId, data, now })
}
