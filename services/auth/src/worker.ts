import { inOrder } from '@services/common/shutdown'
import type { FastifyBaseLogger } from 'fastify'
import type { Deps } from './deps.ts'
import { startHousekeeping } from './housekeeping.ts'
import { MAIL_QUEUE, type MailJob } from './mail/outbox.ts'
import { sendMail } from './mail/send-mail.ts'
import { createMailer } from './mail/smtp.ts'
import {
  MESSAGE_REQUEST_QUEUE,
  type MessageRequest,
  type MessageRequestJob,
  openRequest,
} from './one-time-messages/message-request.ts'
import { sendSignIn } from './otp/send-sign-in.ts'
import { sendRecovery } from './recover/send-recovery.ts'
import { sendAgain } from './resend/send-again.ts'

/** Mails sent at once by one process; the connections to the mail server are as many. */
const MAIL_CONCURRENCY = 4

/** Requests for messages looked after at once; each is a transaction of a few statements. */
const REQUEST_CONCURRENCY = 4

type Answer = (deps: Deps, log: FastifyBaseLogger, request: MessageRequest) => Promise<void>

/** Who looks after a request for a message. */
const ANSWERS: Record<MessageRequest['type'], Answer> = {
  recovery: sendRecovery,
  sign_in: sendSignIn,
  confirmation: sendAgain,
  email_change: sendAgain,
  phone_change: sendAgain,
}

const answerRequest: Answer = (deps, log, request) => ANSWERS[request.type](deps, log, request)

/** Delivers the outbox and deletes what has expired; runs inside the service or as a process of its own (`worker`). */
export async function startWorker(deps: Deps): Promise<() => Promise<void>> {
  const mailer = createMailer(deps.config.smtp)
  await deps.queue.work<MailJob>(MAIL_QUEUE.name, { concurrency: MAIL_CONCURRENCY }, (job) =>
    sendMail({ ...deps, mailer }, job),
  )
  await deps.queue.work<MessageRequestJob>(MESSAGE_REQUEST_QUEUE.name, { concurrency: REQUEST_CONCURRENCY }, (job) =>
    answerRequest(deps, deps.log.child({ jobId: job.id }) as FastifyBaseLogger, openRequest(deps, job.data)),
  )
  const stopHousekeeping = startHousekeeping(deps, deps.log)
  return () => inOrder(deps.log, [stopHousekeeping, () => deps.queue.stop(5_000), mailer.close])
}
