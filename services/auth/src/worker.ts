import { inOrder } from '@services/common/shutdown'
import { answerMessageRequest } from './answer-message-request.ts'
import type { MessageChannel } from './db/tables.ts'
import type { Deps } from './deps.ts'
import { startHousekeeping } from './housekeeping.ts'
import { mailChannel } from './mail/deliver-mail.ts'
import { openMailTemplates } from './mail/mail-templates.ts'
import { createMailer } from './mail/smtp.ts'
import { type Channels, deliverMessage } from './messages/deliver-message.ts'
import { waitForMoment } from './messages/job-delay.ts'
import { MESSAGE_QUEUES, type MessageJob } from './messages/outbox.ts'
import { MESSAGE_REQUEST_QUEUE, type MessageRequestJob } from './one-time-messages/message-request.ts'
import { smsChannel } from './sms/deliver-sms.ts'
import { createSmsSender } from './sms/send-sms.ts'

/** Messages sent, and requests for messages looked after, at once by one process; connections to the mail server are as many. */
const CONCURRENCY = 4

/** Delivers the outbox and deletes what has expired; runs inside the service or as a process of its own (`worker`). */
export async function startWorker(deps: Deps): Promise<() => Promise<void>> {
  const { queue, config, log } = deps
  const templates = openMailTemplates(deps)
  const mailer = createMailer(config.smtp)
  const channels: Channels = {
    mail: mailChannel(deps.config, templates, mailer),
    sms: smsChannel(config, createSmsSender(config.sms, log)),
  }
  void templates.loadRemote()
  for (const channel of Object.keys(channels) as MessageChannel[]) {
    await queue.work<MessageJob>(MESSAGE_QUEUES[channel].name, { concurrency: CONCURRENCY }, async (job) => {
      await waitForMoment(deps, job)
      await deliverMessage({ ...deps, channels }, job)
    })
  }
  await queue.work<MessageRequestJob>(MESSAGE_REQUEST_QUEUE.name, { concurrency: CONCURRENCY }, async (job) => {
    await waitForMoment(deps, job)
    await answerMessageRequest(deps, job)
  })
  const stopHousekeeping = startHousekeeping(deps, log)
  return () => inOrder(log, [stopHousekeeping, () => queue.stop(5_000), mailer.close])
}
