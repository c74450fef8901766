// Giving an account here another one at a provider, because its holder said so: by the link of an invitation, or signed in.
import type { Transaction } from 'kysely'
import { primaryEmail } from '../../adapters/providers/clean-account.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { type AuditLog, audit } from '../audit/audit.ts'
import { requireSecondFactor } from '../freshness/require-fresh.ts'
import { findUserIdByLinkHash, takeByLinkHash } from '../one-time-tokens/one-time-tokens.store.ts'
import { notify } from '../outbox/notify.ts'
import { findCaller } from '../sessions/find-callers.store.ts'
import { whyEnded } from '../sessions/session-limits.ts'
import { applyEmailChange, confirmAddress, refuseTakenEmail } from '../users/addresses.store.ts'
import { changeUser } from '../users/change-user.store.ts'
import { displaceHolder } from '../users/displace-holder.ts'
import { endTokens } from '../users/end-tokens.ts'
import { refreshProviders } from '../users/metadata.store.ts'
import { findUserById, lockAndReadUser, type User } from '../users/users.store.ts'
import { type ExternalSignIn, type ExternalSignInDeps, identityData, mergeIfItFits } from './external-account.ts'
import { forgetRegistrant, isGuarded } from './external-user.ts'
import { findIdentity, insertIdentity } from './identities.store.ts'

/** Whose account the one at the provider is to be linked to, and the session they asked for it in. */
export interface Linking {
  userId: string
  sessionId: string | null
}

/**
 * An invited user joins by the provider's account instead of a password. Throws invite_not_found for a link that is spent,
 * and validation_failed where the provider knows another address than the invited one.
 */
export async function acceptInvitation(
  deps: ExternalSignInDeps,
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
    await forgetRegistrant(trx, user, identityId, now)
    await mergeIfItFits(deps, trx, user, identityData(account, email))
  }
  await endTokens(trx, user.id, 'all', now)
  await confirmAddress(trx, user.id, 'email', now)
  await refreshProviders(trx, user.id, now)
  const joined = (await findUserById(trx, user.id)) as User
  await audit(deps, trx, log, { action: 'invite_accepted', actor: joined, traits: { provider: provider.name } })
  return joined
}

/**
 * The account of who is signed in gets the one at the provider, whatever addresses either has. An account without an address
 * gets the provider's where that is verified; one that is only told it may want to have (`toldEmail`), where it has no number
 * either. Throws identity_already_exists and email_exists, and what a request without a live session is told where it has ended
 * meanwhile.
 */
export async function linkIdentity(
  deps: ExternalSignInDeps,
  trx: Transaction<DB>,
  log: AuditLog,
  { provider, account, acceptLanguage }: ExternalSignIn,
  linking: Linking,
): Promise<{ user: User; toldEmail: string | undefined }> {
  const now = deps.now()
  const { userId } = linking
  const before = await lockAndReadUser(trx, userId)
  if (!before) throw apiError('user_not_found', { status: 422, message: 'Linking target user not found' })
  await requireStillLinkable(deps, trx, before, linking)
  await addIdentity(deps, trx, userId, { provider, account })
  const email = primaryEmail(account)
  if (!before.email && email?.verified) {
    await displaceHolder(deps, trx, log, before, { channel: 'email', value: email.email })
    await refuseTakenEmail(trx, email.email, before.aud, userId)
    await applyEmailChange(trx, userId, email.email, 'proven', now)
  }
  // Who can come back by it is not anonymous any more.
  const letsIn = !email || email.verified || deps.config.external.allowUnverifiedEmail
  if (before.is_anonymous && letsIn) await changeUser(trx, userId, { is_anonymous: false }, now)
  await refreshProviders(trx, userId, now)
  const user = (await findUserById(trx, userId)) as User
  await audit(deps, trx, log, { action: 'identity_linked', actor: user, traits: { provider: provider.name } })
  // To an address that was the user's before: the new one may be anybody's.
  await notify(deps, trx, before, 'identity_linked_notification', { Provider: provider.name }, { acceptLanguage })
  const isTold = !before.email && !before.phone && email && !email.verified
  return { user, toldEmail: isTold ? email.email : undefined }
}

/** Between asking and the provider's answer a thief may have been logged out, or a second factor enrolled. */
async function requireStillLinkable(
  { config, now }: ExternalSignInDeps,
  trx: Transaction<DB>,
  user: User,
  { sessionId }: Linking,
): Promise<void> {
  const limits = config.sessions
  const session = (await findCaller(trx, { userId: user.id, sessionId: sessionId ?? undefined }, limits))?.session
  if (!session || whyEnded(session, limits, now())) throw apiError('session_not_found')
  requireSecondFactor(config, ['linking an identity'], user, session)
}

async function addIdentity(
  deps: ExternalSignInDeps,
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
  await insertIdentity(trx, {
    id,
    userId,
    provider: provider.name,
    providerId: account.sub,
    data: identityData(account, primaryEmail(account)),
    now: deps.now(),
  })
  return id
}
