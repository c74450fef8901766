import { type AuditLog, audit } from '../../core/audit/audit.ts'
import { claimOf, noteClaim } from '../../core/users/claims.ts'
import { releaseAddress } from '../../core/users/unproven-holder.store.ts'
import { findUserByEmail, lockUser, setSentAt } from '../../core/users/users.store.ts'
import { sendLinkMail } from '../../core/verification-messages/link-mail.ts'
import type { MessageRequest } from '../../core/verification-messages/message-request.ts'
import { pretendMessage } from '../../core/verification-messages/pretend-message.ts'
import { takeMailboxSlot } from '../../core/verification-messages/send-gap.ts'
import type { Deps } from '../../deps.ts'
import { decoyUser } from './decoy-user.ts'

/** The worker's half of POST /recover. On an unconfirmed account the link drops its data: a stranger may have chosen it. */
export async function sendRecovery(deps: Deps, log: AuditLog, request: MessageRequest): Promise<void> {
  const { address, audience, context, pkce, messageId, isOverCap } = request
  await deps.db.transaction().execute(async (trx) => {
    await noteClaim(trx, claimOf(deps, { address, passwordHash: null, data: {} }))
    await releaseAddress(trx, address, audience, deps.now())
    const user = await findUserByEmail(trx, address.value, audience)
    const unknown = decoyUser(deps, request)
    const isClaim = user !== undefined && !user.email_confirmed_at
    const isProven = user !== undefined && !isClaim
    const isRefused = isOverCap && !((await takeMailboxSlot(deps, trx, address.value, isProven)) && isProven)
    if (!(await lockUser(trx, (user ?? unknown).id)) || !user || isRefused) {
      return pretendMessage(deps, trx, log, unknown, 'recovery', request)
    }
    await audit(deps, trx, log, { action: 'user_recovery_requested', actor: user })
    const message = { user, to: address.value, messageId, isClaim, hasLongCode: isOverCap }
    await sendLinkMail(deps, trx, { ...message, ...context, kind: 'recovery', pkce })
    await setSentAt(trx, user.id, 'recovery_sent_at', deps.now())
  })
}
