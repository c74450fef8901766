import { inOrder } from '@services/common/shutdown'
import type { Deps } from './deps.ts'
import { startHousekeeping } from './housekeeping.ts'
import { MAIL_QUEUE, type MailJob } from './mail/outbox.ts'
import { sendMail } from './mail/send-mail.ts'
import { createMailer } from './mail/smtp.ts'

/** Mails sent at once by one process; the connections to the mail server are as many. */
const MAIL_CONCURRENCY = 4

/** Delivers the outbox and deletes what has expired; runs inside the service or as a process of its own (`worker`). */
export async function startWorker(deps: Deps): Promise<() => Promise<void>> {
  const mailer = createMailer(deps.config.smtp)
  await deps.queue.work<MailJob>(MAIL_QUEUE.name, { concurrency: MAIL_CONCURRENCY }, (job) =>
    sendMail({ ...deps, mailer }, job),
  )
  const stopHousekeeping = startHousekeeping(deps, deps.log)
  return () => inOrder(deps.log, [stopHousekeeping, () => deps.queue.stop(5_000), mailer.close])
}
