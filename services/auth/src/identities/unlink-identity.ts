import type { Transaction } from 'kysely'
import { type AuditLog, audit } from '../audit/audit.ts'
import type { DB } from '../db/tables.ts'
import { apiError } from '../errors.ts'
import { notify } from '../mail/notify.ts'
import { endTokens } from '../one-time-tokens/end-tokens.ts'
import { isEmailTaken } from '../users/addresses.store.ts'
import { changeUser, type UserChanges } from '../users/change-user.store.ts'
import { refreshProviders } from '../users/metadata.store.ts'
import { type IdentityJson, lockAndReadUser, type User } from '../users/users.store.ts'
import type { ExternalSignInDeps } from './external-user.ts'
import { deleteIdentity } from './identities.store.ts'

/**
 * Takes an identity from its user. An address that came with it goes too, and that of another identity takes its place
 * (contract/auth-external.md 3). Throws single_identity_not_deletable, identity_not_found and
 * email_conflict_identity_not_deletable.
 */
export async function unlinkIdentity(
  deps: ExternalSignInDeps,
  trx: Transaction<DB>,
  log: AuditLog,
  { userId, identityId, acceptLanguage }: { userId: string; identityId: string; acceptLanguage: string | undefined },
): Promise<void> {
  const now = deps.now()
  const user = await lockAndReadUser(trx, userId)
  if (!user) throw apiError('user_not_found')
  const identity = user.identities.find(({ id }) => id === identityId.toLowerCase())
  if (user.identities.length <= 1) throw apiError('single_identity_not_deletable')
  if (!identity) throw apiError('identity_not_found')
  const rest = user.identities.filter(({ id }) => id !== identity.id)
  const changes = changesWithout(user, identity, rest, deps.config.mail.autoconfirm, now)
  if (changes?.email && (await isEmailTaken(trx, changes.email, user.aud, user.id))) {
    throw apiError('email_conflict_identity_not_deletable')
  }
  await deleteIdentity(trx, identity.id)
  if (changes) {
    await changeUser(trx, userId, changes, now).catch((cause: unknown) => {
      throw apiError('email_conflict_identity_not_deletable', { cause })
    })
    // What was sent to an address that is not the user's any more is worth nothing.
    await endTokens(trx, userId, 'all', now)
  }
  await refreshProviders(trx, userId, now)
  const { provider } = identity
  await audit(deps, trx, log, {
    action: 'identity_unlinked',
    actor: user,
    traits: { provider, identity_id: identity.id },
  })
  await notify(deps, trx, user, 'identity_unlinked_notification', { Provider: provider }, { acceptLanguage })
}

/** The addresses the user has without the identity; undefined: the same. */
function changesWithout(
  user: User,
  identity: IdentityJson,
  rest: readonly IdentityJson[],
  autoconfirm: boolean,
  now: Date,
): UserChanges | undefined {
  if (identity.provider === 'phone') return { phone: null, phone_confirmed_at: null }
  if (!user.email || identity.email !== user.email || rest.some(({ email }) => email === user.email)) return undefined
  const next = rest.find((other) => other.email && isVerified(other)) ?? rest.find((other) => other.email)
  const isProven = next && (isVerified(next) || autoconfirm)
  return { email: next?.email ?? null, email_confirmed_at: isProven ? now : null }
}

const isVerified = ({ identity_data }: IdentityJson) => identity_data.email_verified === true
