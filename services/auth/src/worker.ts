import { inOrder } from '@services/common/process/shutdown'
import { openMailTemplates } from './adapters/mail/mail-templates.ts'
import { createMailer } from './adapters/mail/smtp.ts'
import { createSmsSender } from './adapters/sms/send-sms.ts'
import { mailChannel, smsChannel } from './core/outbox/channels.ts'
import { type Channels, deliverMessage } from './core/outbox/deliver-message.ts'
import { waitForMoment } from './core/outbox/job-delay.ts'
import { MESSAGE_QUEUES, type MessageJob } from './core/outbox/outbox.ts'
import { MESSAGE_REQUEST_QUEUE, type MessageRequestJob } from './core/verification-messages/message-request.ts'
import type { MessageChannel } from './db/tables.ts'
import type { Deps } from './deps.ts'
import { answerMessageRequest } from './flows/message-requests/answer-message-request.ts'
import { startHousekeeping } from './housekeeping.ts'

/** Concurrent messages, and concurrent message requests, per process; as many connections to the mail server. */
const CONCURRENCY = 4

/** Delivers the outbox and deletes expired rows; runs inside the service or as a separate process (`worker`). */
export async function startWorker(deps: Deps, concurrency = CONCURRENCY): Promise<() => Promise<void>> {
  const { queue, config, log } = deps
  const templates = openMailTemplates(deps)
  const mailer = createMailer(config.smtp)
  const channels: Channels = {
    mail: mailChannel(deps.config, templates, mailer),
    sms: smsChannel(createSmsSender(config.sms, log)),
  }
  void templates.loadRemote()
  for (const channel of Object.keys(channels) as MessageChannel[]) {
    await queue.work<MessageJob>(MESSAGE_QUEUES[channel].name, { concurrency }, async (job) => {
      await waitForMoment(deps, job)
      await deliverMessage({ ...deps, channels }, job)
    })
  }
  await queue.work<MessageRequestJob>(MESSAGE_REQUEST_QUEUE.name, { concurrency }, async (job) => {
    await waitForMoment(deps, job)
    await answerMessageRequest(deps, job)
  })
  const stopHousekeeping = startHousekeeping(deps, log)
  return () => inOrder(log, [stopHousekeeping, () => queue.stop(5_000), mailer.close])
}
