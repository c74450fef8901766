// Giving an account here another one at a provider, because its holder said so: by the link of an invitation, or signed in.
import type { Transaction } from 'kysely'
import { type AuditLog, audit } from '../audit/audit.ts'
import type { DB } from '../db/tables.ts'
import { apiError } from '../errors.ts'
import { isBelowUser } from '../factors/assurance.ts'
import { notify } from '../mail/notify.ts'
import { endTokens } from '../one-time-tokens/end-tokens.ts'
import { findUserIdByLinkHash, takeByLinkHash } from '../one-time-tokens/one-time-tokens.store.ts'
import { primaryEmail } from '../providers/clean-account.ts'
import { lockSession } from '../sessions/sessions.store.ts'
import { refuseTakenAddress } from '../users/address-taken.ts'
import { applyEmailChange, confirmAddress, refuseTakenEmail } from '../users/addresses.store.ts'
import { changeUser } from '../users/change-user.store.ts'
import { refreshProviders } from '../users/metadata.store.ts'
import { findUserById, lockAndReadUser, type User } from '../users/users.store.ts'
import { findIdentity, lockExternalAccount } from './external-user.store.ts'
import { type ExternalSignIn, type ExternalSignInDeps, identityData, mergeIfItFits } from './external-user.ts'
import { insertIdentity } from './identities.store.ts'

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
  await lockExternalAccount(trx, provider.name, account.sub)
  const userId = await findUserIdByLinkHash(trx, inviteTokenHash, ['confirmation'])
  const user = userId && (await lockAndReadUser(trx, userId))
  const token = user && (await takeByLinkHash(trx, inviteTokenHash, ['confirmation']))
  if (!user || !token || token.expires_at <= now || token.relates_to !== user.email) throw apiError('invite_not_found')
  const email = account.emails.find((known) => known.email === user.email)
  if (!email) {
    throw apiError('validation_failed', { message: 'Invited email does not match emails from external provider' })
  }
  await addIdentity(deps, trx, user.id, { provider, account })
  await mergeIfItFits(deps, trx, user, identityData(account, email))
  await endTokens(trx, user.id, 'all', now)
  await confirmAddress(trx, user.id, 'email', now)
  await refreshProviders(trx, user.id, now)
  const joined = (await findUserById(trx, user.id)) as User
  await audit(deps, trx, log, { action: 'invite_accepted', actor: joined, traits: { provider: provider.name } })
  return joined
}

/** Who wants an account of theirs linked, by the session they asked from; undefined: it is not known any more. */
export interface LinkingCaller {
  userId: string
  sessionId: string | undefined
}

/**
 * The account of who is signed in gets the one at the provider, whatever addresses either has. Of an account without an
 * address the provider's becomes its own: proven, or to be proven. Throws identity_already_exists and email_exists,
 * and session_not_found, insufficient_aal or user_banned for who was put out since.
 */
export async function linkIdentity(
  deps: ExternalSignInDeps,
  trx: Transaction<DB>,
  log: AuditLog,
  { provider, account, acceptLanguage }: ExternalSignIn,
  { userId, sessionId }: LinkingCaller,
): Promise<{ user: User; awaitsProof: boolean }> {
  const now = deps.now()
  await lockExternalAccount(trx, provider.name, account.sub)
  const before = await lockAndReadUser(trx, userId)
  if (!before) throw apiError('user_not_found', { status: 422, message: 'Linking target user not found' })
  await requireStillIn(trx, before, sessionId, now)
  await addIdentity(deps, trx, userId, { provider, account })
  const email = primaryEmail(account)
  if (!before.email && email) {
    await refuseTakenEmail(trx, email.email, before.aud, userId)
    if (email.verified) await applyEmailChange(trx, userId, email.email, now)
    else await changeUser(trx, userId, { email: email.email }, now).catch(refuseTakenAddress)
  }
  // Who can come back by it is not anonymous any more.
  if (before.is_anonymous && (!email || email.verified)) await changeUser(trx, userId, { is_anonymous: false }, now)
  await refreshProviders(trx, userId, now)
  const user = (await findUserById(trx, userId)) as User
  await audit(deps, trx, log, { action: 'identity_linked', actor: user, traits: { provider: provider.name } })
  // To an address that was the user's before: the new one may be anybody's.
  await notify(deps, trx, before, 'identity_linked_notification', { Provider: provider.name }, { acceptLanguage })
  return { user, awaitsProof: !before.email && email !== undefined && !email.verified }
}

/**
 * Between asking and coming back from the provider lie minutes: whoever was put out meanwhile, by a sign-out, a ban or a
 * second factor, must not come back by the account they link.
 */
async function requireStillIn(
  trx: Transaction<DB>,
  user: User,
  sessionId: string | undefined,
  now: Date,
): Promise<void> {
  if (user.banned_until && user.banned_until > now) throw apiError('user_banned')
  const session = sessionId && (await lockSession(trx, sessionId))
  if (!session) throw apiError('session_not_found')
  if (isBelowUser(user, session)) throw apiError('insufficient_aal')
}

/** With the account at the provider locked, before the user as at a sign-in: the other way round they wait for each other. */
async function addIdentity(
  deps: ExternalSignInDeps,
  trx: Transaction<DB>,
  userId: string,
  { provider, account }: Pick<ExternalSignIn, 'provider' | 'account'>,
): Promise<void> {
  const taken = await findIdentity(trx, provider.name, account.sub)
  if (taken) {
    const message =
      taken.user_id === userId ? 'Identity is already linked' : 'Identity is already linked to another user'
    throw apiError('identity_already_exists', { message })
  }
  await insertIdentity(trx, {
    id: deps.newId(),
    userId,
    provider: provider.name,
    providerId: account.sub,
    data: identityData(account, primaryEmail(account)),
    now: deps.now(),
  })
}
