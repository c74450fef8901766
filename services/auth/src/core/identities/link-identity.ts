// An identity that a signed-in user or an invitation adds, or a user removes. Joining by a verified address:
// join-or-create-user.ts.

import type { Transaction } from 'kysely'
import { primaryEmail } from '../../adapters/oauth/clean-account.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { type AuditLog, audit } from '../audit/audit.ts'
import { findCustomProvider } from '../custom-providers/custom-providers.store.ts'
import { requireSecondFactor } from '../freshness/require-fresh.ts'
import { findUserIdByLinkHash, takeByLinkHash } from '../one-time-tokens/one-time-tokens.store.ts'
import { notify } from '../outbox/notify.ts'
import { findAcceptedSession } from '../sessions/accepted-session.ts'
import { applyEmailChange, confirmAddress, refuseTakenEmail } from '../users/addresses.store.ts'
import { changeUser, noAddress } from '../users/change-user.store.ts'
import { displaceRegistrant } from '../users/displace-registrant.ts'
import { endTokens } from '../users/end-tokens.ts'
import { refreshProviders } from '../users/metadata.store.ts'
import { findUserById, type IdentityJson, lockAndReadUser, type User } from '../users/users.store.ts'
import { type ExternalDeps, type ExternalSignIn, identityData, mergeIfItFits } from './external-account.ts'
import { deleteIdentity, findIdentity, insertIdentity } from './identities.store.ts'
import { forgetPendingRegistrant, isGuarded } from './join-or-create-user.ts'
import { hasPasskeyBesides, hasWayInBesides, type WaysInDeps } from './ways-in.ts'

/** User to link the account at the provider to, and the session that requested it. */
export interface Linking {
  userId: string
  sessionId: string
}

/** Accepts an invitation by a provider's account; throws invite_not_found, or validation_failed for another address. */
export async function acceptInvitation(
  deps: ExternalDeps,
  trx: Transaction<DB>,
  log: AuditLog,
  { provider, account }: ExternalSignIn,
  inviteTokenHash: Buffer,
): Promise<User> {
  const now = deps.now()
  const userId = await findUserIdByLinkHash(trx, inviteTokenHash, ['confirmation'])
  const user = userId && (await lockAndReadUser(trx, userId))
  const token = user && (await takeByLinkHash(trx, inviteTokenHash, ['confirmation']))
  if (!user || !token || token.expires_at <= now || token.relates_to !== user.email) throw apiError('invite_not_found')
  const email = account.emails.find((known) => known.email === user.email)
  if (!email) {
    throw apiError('validation_failed', { message: 'Invited email does not match emails from external provider' })
  }
  if (!isGuarded(user)) {
    const identityId = await addIdentity(deps, trx, user.id, { provider, account })
    await forgetPendingRegistrant(trx, user, identityId, now)
    await mergeIfItFits(trx, user, identityData(account, email), now)
  }
  await endTokens(trx, user.id, 'all', now)
  await confirmAddress(trx, user.id, 'email', now)
  await refreshProviders(trx, user.id, now)
  const joined = (await findUserById(trx, user.id)) as User
  await audit(deps, trx, log, { action: 'invite_accepted', actor: joined, traits: { provider: provider.name } })
  return joined
}

/**
 * Links an account at a provider to a signed-in user; their addresses may differ. A user without an address gets the
 * provider's if verified. An unverified one becomes a requested change (`reportedEmail`) unless the user has a number.
 * Throws identity_already_exists, email_exists, and session_not_found when the session has ended.
 */
export async function linkIdentity(
  deps: ExternalDeps,
  trx: Transaction<DB>,
  log: AuditLog,
  { provider, account, acceptLanguage }: ExternalSignIn,
  linking: Linking,
): Promise<{ user: User; reportedEmail: string | undefined }> {
  const now = deps.now()
  const { userId } = linking
  const before = await lockAndReadUser(trx, userId)
  if (!before) throw apiError('user_not_found', { status: 422, message: 'Linking target user not found' })
  await requireStillLinkable(deps, trx, before, linking)
  await addIdentity(deps, trx, userId, { provider, account })
  const email = primaryEmail(account)
  if (!before.email && email?.verified) {
    await displaceRegistrant(deps, trx, log, before, { channel: 'email', value: email.email })
    await refuseTakenEmail(trx, email.email, before.aud, userId)
    await applyEmailChange(trx, userId, email.email, 'proven', now)
  }
  // A user who can sign in by the account is no longer anonymous.
  const letsIn = !email || email.verified || deps.config.external.allowUnverifiedEmail
  if (before.is_anonymous && letsIn) await changeUser(trx, userId, { is_anonymous: false }, now)
  await refreshProviders(trx, userId, now)
  const user = (await findUserById(trx, userId)) as User
  await audit(deps, trx, log, { action: 'identity_linked', actor: user, traits: { provider: provider.name } })
  // Notified at the previous address: the new one may be a stranger's.
  await notify(
    deps,
    trx,
    before,
    'identity_linked_notification',
    { Provider: provider.label ?? provider.name },
    { acceptLanguage },
  )
  const isTold = !before.email && !before.phone && email && !email.verified
  return { user, reportedEmail: isTold ? email.email : undefined }
}

/** Checks again: meanwhile a thief may have been signed out, or a second factor enrolled. */
async function requireStillLinkable(deps: ExternalDeps, trx: Transaction<DB>, user: User, linking: Linking) {
  const session = await findAcceptedSession(deps, trx, linking)
  if (!session) throw apiError('session_not_found')
  requireSecondFactor(deps, ['linking an identity'], user, session)
}

async function addIdentity(
  deps: ExternalDeps,
  trx: Transaction<DB>,
  userId: string,
  { provider, account }: Pick<ExternalSignIn, 'provider' | 'account'>,
): Promise<string> {
  const taken = await findIdentity(trx, provider.name, account.sub)
  if (taken) {
    const message =
      taken.user_id === userId ? 'Identity is already linked' : 'Identity is already linked to another user'
    throw apiError('identity_already_exists', { message })
  }
  const id = deps.newId()
  const data = identityData(account, primaryEmail(account))
  await insertIdentity(trx, { id, userId, provider: provider.name, providerId: account.sub, data, now: deps.now() })
  return id
}

/**
 * Unlinks an identity, but not the last way in. The account keeps its e-mail address, but loses a number. Throws
 * single_identity_not_deletable, identity_not_found and email_conflict_identity_not_deletable.
 */
export async function unlinkIdentity(
  deps: ExternalDeps & WaysInDeps,
  trx: Transaction<DB>,
  log: AuditLog,
  { userId, identityId, acceptLanguage }: { userId: string; identityId: string; acceptLanguage: string | undefined },
): Promise<void> {
  const now = deps.now()
  const user = await lockAndReadUser(trx, userId)
  if (!user) throw apiError('user_not_found')
  const identity = user.identities.find(({ id }) => id === identityId.toLowerCase())
  const isSingle = user.identities.length <= 1 && !(await hasPasskeyBesides(deps, trx, user))
  if (isSingle) throw apiError('single_identity_not_deletable')
  if (!identity) throw apiError('identity_not_found')
  if (carriesAddress(user, identity)) {
    throw apiError('email_conflict_identity_not_deletable', {
      message: 'Unable to unlink the identity of the email address of the user; change the address first',
    })
  }
  const { id, provider } = identity
  const channels = provider === 'phone' ? (['phone'] as const) : []
  if (!(await hasWayInBesides(deps, trx, user, { channels, identityId: id }))) {
    throw apiError('single_identity_not_deletable')
  }
  await deleteIdentity(trx, id)
  // Reported at its sign-in, which no session began: confirming it would be a way back.
  if (identity.email !== null && identity.email === user.email_change) await endTokens(trx, userId, 'changes', now)
  if (provider === 'phone') {
    await changeUser(trx, userId, noAddress('phone'), now)
    // Codes sent to the removed number become invalid.
    await endTokens(trx, userId, 'all', now)
  }
  await refreshProviders(trx, userId, now)
  await audit(deps, trx, log, { action: 'identity_unlinked', actor: user, traits: { provider, identity_id: id } })
  const custom = provider.startsWith('custom:') ? await findCustomProvider(trx, provider) : undefined
  const shown = { Provider: custom?.name ?? provider }
  await notify(deps, trx, user, 'identity_unlinked_notification', shown, { acceptLanguage })
}

/** Reports whether the confirmed address belongs only to this identity. */
const carriesAddress = ({ email, email_confirmed_at, identities }: User, { id, email: carried }: IdentityJson) =>
  email !== null &&
  email_confirmed_at !== null &&
  carried === email &&
  !identities.some((other) => other.id !== id && other.email === email)
