import { PermanentFailure, type QueueJob } from '@services/common/queue'
import { TemporaryFailure } from '../../adapters/delivery-failures.ts'
import { type AuditLog, noteOrigin } from '../../core/audit/audit.ts'
import { messageExists } from '../../core/outbox/messages.store.ts'
import { withSettingsAsked } from '../../core/verification-messages/asked-settings.ts'
import {
  MESSAGE_REQUEST_QUEUE,
  type MessageRequest,
  type MessageRequestJob,
  openRequest,
} from '../../core/verification-messages/message-request.ts'
import type { Deps } from '../../deps.ts'
import { sendAgain } from './send-again.ts'
import { sendRecovery } from './send-recovery.ts'
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
  const { settings } = request
  const asked = settings ? { ...deps, config: withSettingsAsked(deps.config, settings) } : deps
  const log = deps.log.child({ jobId: job.id })
  const { origin } = request
  if (origin) noteOrigin(log, () => origin)
  await ANSWERS[request.type](asked, log, request)
}

/** Gives a request that cannot be opened here back to the other workers; after the last retry it is an error in the log. */
function openUnlessLast(deps: Deps, { data, retryCount }: QueueJob<MessageRequestJob>): MessageRequest {
  try {
    return openRequest(deps, data)
  } catch (error) {
    if (!(error instanceof TemporaryFailure) || retryCount < MESSAGE_REQUEST_QUEUE.retryLimit) throw error
    throw new PermanentFailure(error.message, { cause: error.cause })
  }
}
