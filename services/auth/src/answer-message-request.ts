import type { QueueJob } from '@services/common/queue'
import type { AuditLog } from './audit/audit.ts'
import type { Deps } from './deps.ts'
import { messageExists } from './messages/messages.store.ts'
import { type MessageRequest, type MessageRequestJob, openRequest } from './one-time-messages/message-request.ts'
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

/** The worker's half of POST /otp, /recover and /resend: finds the flow that knows what fits the address. */
export async function answerMessageRequest(deps: Deps, job: QueueJob<MessageRequestJob>): Promise<void> {
  const request = openRequest(deps, job.data)
  // A worker that died after its commit: the message is there, and nothing is left to do.
  if (await messageExists(deps.db, request.messageId)) return
  await ANSWERS[request.type](deps, deps.log.child({ jobId: job.id }), request)
}
