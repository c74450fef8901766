import { testCodeOf } from '../../../adapters/test-codes.ts'
import { type Actor, type AuditLog, audit } from '../../../core/audit/audit.ts'
import { claimOf, recordClaim } from '../../../core/users/address-claims.ts'
import { isBanned } from '../../../core/users/is-banned.ts'
import { lockAndReadUser, setSentAt, type User } from '../../../core/users/users.store.ts'
import { type MailContext, sendLinkMail } from '../../../core/verification-messages/link-mail.ts'
import { withMessagesCounted } from '../../../core/verification-messages/message-budget.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'

/**
 * Sends a user the mail of POST /recover at an admin's request: no gap between messages applies, and the admin learns
 * why none is sent. On an unconfirmed account the link drops its data, which may be a stranger's.
 */
export async function recoverUser(
  deps: Deps,
  log: AuditLog,
  admin: Actor,
  { user: found, context }: { user: User; context: MailContext },
): Promise<void> {
  const { id } = found
  const email = requireRecoverable(deps, found)
  const send = () =>
    deps.db.transaction().execute(async (trx) => {
      await recordClaim(
        trx,
        claimOf(deps, { address: { channel: 'email', value: email }, passwordHash: null, data: {} }),
      )
      const user = await lockAndReadUser(trx, id)
      if (!user) throw apiError('user_not_found', { status: 404, message: 'User not found' })
      if (requireRecoverable(deps, user) !== email) throw unsent('The address has changed')
      const isClaim = !user.email_confirmed_at
      const recipient = isClaim ? { ...user, user_metadata: {} } : user
      await sendLinkMail(deps, trx, { ...context, kind: 'recovery', to: email, user: recipient, isClaim })
      await setSentAt(trx, id, 'recovery_sent_at', deps.now())
      await audit(deps, trx, log, { action: 'user_recovery_requested', actor: admin, target: user })
    })
  await withMessagesCounted(deps, [{ channel: 'email', value: email, share: 'admins' }], send)
}

/** Returns the address of a user whom a link can let in again; throws the reason why none can. */
function requireRecoverable({ config, now }: Pick<Deps, 'config' | 'now'>, user: User): string {
  if (user.deleted_at) throw unsent('The user is deleted')
  if (!user.email) throw unsent('The user has no e-mail address')
  if (isBanned(user, now())) throw apiError('user_banned', { status: 422 })
  if (testCodeOf(config.mail.testAddresses, user.email, now())) {
    const message = 'The address has a fixed code (AUTH_MAILER_TEST_OTP), so no mail is sent to it'
    throw apiError('email_address_not_authorized', { status: 422, message })
  }
  return user.email
}

const unsent = (message: string) => apiError('validation_failed', { status: 422, message })
