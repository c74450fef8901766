import { type Actor, type AuditLog, audit } from '../../../core/audit/audit.ts'
import { claimOf, recordClaim } from '../../../core/users/address-claims.ts'
import { lockAndReadUser, setSentAt } from '../../../core/users/users.store.ts'
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
  { email, id, context }: { id: string; email: string | null; context: MailContext },
): Promise<void> {
  if (!email) throw apiError('validation_failed', { status: 422, message: 'The user has no e-mail address' })
  const send = () =>
    deps.db.transaction().execute(async (trx) => {
      await recordClaim(
        trx,
        claimOf(deps, { address: { channel: 'email', value: email }, passwordHash: null, data: {} }),
      )
      const user = await lockAndReadUser(trx, id)
      if (user?.email !== email)
        throw apiError('validation_failed', { status: 422, message: 'The address has changed' })
      const isClaim = !user.email_confirmed_at
      const recipient = isClaim ? { ...user, user_metadata: {} } : user
      await sendLinkMail(deps, trx, { ...context, kind: 'recovery', to: email, user: recipient, isClaim })
      await setSentAt(trx, id, 'recovery_sent_at', deps.now())
      await audit(deps, trx, log, { action: 'user_recovery_requested', actor: admin, target: user })
    })
  await withMessagesCounted(deps, [{ channel: 'email', value: email, share: 'admins' }], send)
}
