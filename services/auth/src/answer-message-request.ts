import { PermanentFailure, type QueueJob } from '@services/common/queue'
import type { AuditLog } from './audit/audit.ts'
import { noteOrigin } from './audit/origin.ts'
import type { Deps } from './deps.ts'
import { TemporaryFailure } from './messages/failures.ts'
import { messageExists } from './messages/messages.store.ts'
import { withSettingsAsked } from './one-time-messages/asked-settings.ts'
import {
  MESSAGE_REQUEST_QUEUE,
  type MessageRequest,
  type MessageRequestJob,
  openRequest,
} from './one-time-messages/message-request.ts'
import { sendSignIn } from './otp/send-sign-in.ts'
import { sendRecovery } from './recover/send-recovery.ts'
import { sendAgain } from './resend/send-again.ts'

type Answer = (deps: Deps, log: AuditLog, request: MessageRequest) => Promise<void>

const ANSWERS: Record<MessageRequest['type'], Answer> = {
  recovery: sendRecovery,
  sign_in: sendSignIn,
  confirmation: sendAgain,
  email_change: sendAgain,
  phone_change: sendAgain,
}

/**
 * The worker's half of POST /otp, /recover and /resend: finds the flow that knows what fits the address, and decides as the
 * instance that was asked would have.
 */
export async function answerMessageRequest(deps: Deps, job: QueueJob<MessageRequestJob>): Promise<void> {
  const request = openUnlessLast(deps, job)
  // A worker that died after its commit: the message is there, and nothing is left to do.
  if (await messageExists(deps.db, request.messageId)) return
  const { settings } = request
  const asked = settings ? { ...deps, config: withSettingsAsked(deps.config, settings) } : deps
  const log = deps.log.child({ jobId: job.id })
  const { origin } = request
  if (origin) noteOrigin(log, () => origin)
  await ANSWERS[request.type](asked, log, request)
}

/** A request that no worker could open in all its time is an error in the log; until then it is given back to the others. */
function openUnlessLast(deps: Deps, { data, retryCount }: QueueJob<MessageRequestJob>): MessageRequest {
  try {
    return openRequest(deps, data)
  } catch (error) {
    if (!(error instanceof TemporaryFailure) || retryCount < MESSAGE_REQUEST_QUEUE.retryLimit) throw error
    throw new PermanentFailure(error.message, { cause: error.cause })
  }
}
