import { PermanentFailure, type QueueJob } from '@services/common/queue/run-job'
import { TemporaryFailure } from '../../adapters/delivery-failures.ts'
import { type AuditLog, audit, recordOrigin } from '../../core/audit/audit.ts'
import { messageExists } from '../../core/outbox/messages.store.ts'
import { whileSending } from '../../core/outbox/sending-request.ts'
import { claimOf, recordClaim } from '../../core/users/address-claims.ts'
import { releaseAddress } from '../../core/users/registrants.store.ts'
import { findUserByEmail, lockUser, setSentAt } from '../../core/users/users.store.ts'
import { sendLinkMail } from '../../core/verification-messages/link-mail.ts'
import {
  MESSAGE_REQUEST_QUEUE,
  type MessageRequest,
  type MessageRequestJob,
  openRequest,
} from '../../core/verification-messages/message-request.ts'
import { pretendMessage } from '../../core/verification-messages/pretend-message.ts'
import { withRequestSettings } from '../../core/verification-messages/request-settings.ts'
import { takeMailboxSlot } from '../../core/verification-messages/send-gap.ts'
import type { Deps } from '../../deps.ts'
import { decoyUser } from './decoy-user.ts'
import { sendAgain } from './send-again.ts'
import { sendSignIn } from './send-sign-in.ts'

type Answer = (deps: Deps, log: AuditLog, request: MessageRequest) => Promise<void>

const ANSWERS: Record<MessageRequest['type'], Answer> = {
  recovery: sendRecovery,
  sign_in: sendSignIn,
  confirmation: sendAgain,
  email_change: sendAgain,
  phone_change: sendAgain,
}

/** The worker's half of a message request. Applies the settings of the instance that accepted it. */
export async function answerMessageRequest(deps: Deps, job: QueueJob<MessageRequestJob>): Promise<void> {
  const request = openUnlessLast(deps, job)
  // Already sent by a worker that died after its commit.
  if (await messageExists(deps.db, request.messageId)) return
  const requestDeps = { ...deps, config: withRequestSettings(deps.config, request.settings) }
  const log = deps.log.child({ jobId: job.id })
  recordOrigin(log, () => request.origin)
  await whileSending({ ip: request.origin.ip ?? undefined }, () => ANSWERS[request.type](requestDeps, log, request))
}

/**
 * Gives a request that cannot be opened here back to the other workers; after the last retry it is an error in the log.
 */
function openUnlessLast(deps: Deps, { data, retryCount }: QueueJob<MessageRequestJob>): MessageRequest {
  try {
    return openRequest(deps, data)
  } catch (error) {
    if (!(error instanceof TemporaryFailure) || retryCount < MESSAGE_REQUEST_QUEUE.retryLimit) throw error
    throw new PermanentFailure(error.message, { cause: error.cause })
  }
}

/**
 * The worker's half of POST /recover. On an unconfirmed account the link drops its data: a stranger may have chosen it.
 */
export async function sendRecovery(deps: Deps, log: AuditLog, request: MessageRequest): Promise<void> {
  const { address, audience, context, pkce, messageId, isOverCap } = request
  await deps.db.transaction().execute(async (trx) => {
    await recordClaim(trx, claimOf(deps, { address, passwordHash: null, data: {} }))
    await releaseAddress(deps, trx, address, audience)
    const user = await findUserByEmail(trx, address.value, audience)
    const unknown = decoyUser(deps, request)
    const isClaim = user !== undefined && !user.email_confirmed_at
    const isProven = user !== undefined && !isClaim
    const isRefused = isOverCap && !((await takeMailboxSlot(deps, trx, address.value, isProven)) && isProven)
    if (!(await lockUser(trx, (user ?? unknown).id)) || !user || isRefused) {
      return pretendMessage(deps, trx, log, unknown, 'recovery', request)
    }
    await audit(deps, trx, log, { action: 'user_recovery_requested', actor: user })
    // The data of an account that awaits its proof may be a stranger's.
    const recipient = isClaim ? { ...user, user_metadata: {} } : user
    const message = { user: recipient, to: address.value, messageId, isClaim, hasLongCode: isOverCap }
    await sendLinkMail(deps, trx, { ...message, ...context, kind: 'recovery', pkce })
    await setSentAt(trx, user.id, 'recovery_sent_at', deps.now())
  })
}
