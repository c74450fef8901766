import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { type AuditLog, audit } from '../audit/audit.ts'
import { notify } from '../outbox/notify.ts'
import { changeUser, noAddress } from '../users/change-user.store.ts'
import { endTokens } from '../users/end-tokens.ts'
import { refreshProviders } from '../users/metadata.store.ts'
import { type IdentityJson, lockAndReadUser, type User } from '../users/users.store.ts'
import type { ExternalSignInDeps } from './external-account.ts'
import { deleteIdentity } from './identities.store.ts'

/**
 * Unlinks an identity. The account keeps its e-mail address, but loses a number with its identity. Throws
 * single_identity_not_deletable, identity_not_found and email_conflict_identity_not_deletable.
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
  if (carriesAddress(user, identity)) {
    throw apiError('email_conflict_identity_not_deletable', {
      message: 'Unable to unlink the identity of the email address of the user; change the address first',
    })
  }
  await deleteIdentity(trx, identity.id)
  if (identity.provider === 'phone') {
    await changeUser(trx, userId, noAddress('phone'), now)
    // Codes sent to the removed number become invalid.
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

/** Reports whether the confirmed address belongs only to this identity. */
const carriesAddress = (
  { email, email_confirmed_at, identities }: User,
  { id, email: carried }: IdentityJson,
): boolean =>
  email !== null &&
  email_confirmed_at !== null &&
  carried === email &&
  !identities.some((other) => other.id !== id && other.email === email)
