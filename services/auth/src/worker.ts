import { inOrder } from '@services/common/shutdown'
import type { MessageChannel } from './db/tables.ts'
import type { Deps } from './deps.ts'
import { startHousekeeping } from './housekeeping.ts'
import { mailChannel } from './mail/deliver-mail.ts'
import { openMailTemplates } from './mail/mail-templates.ts'
import { createMailer } from './mail/smtp.ts'
import { type Channels, deliverMessage } from './messages/deliver-message.ts'
import { MESSAGE_QUEUES, type MessageJob } from './messages/outbox.ts'

/** Messages sent at once by one process and channel; the connections to the mail server are as many. */
const CONCURRENCY = 4

/** Delivers the outbox and deletes what has expired; runs inside the service or as a process of its own (`worker`). */
export async function startWorker(deps: Deps): Promise<() => Promise<void>> {
  const templates = openMailTemplates(deps)
  const mailer = createMailer(deps.config.smtp)
  const channels: Channels = { mail: mailChannel(templates, mailer) }
  void templates.loadRemote()
  for (const channel of Object.keys(channels) as MessageChannel[]) {
    await deps.queue.work<MessageJob>(MESSAGE_QUEUES[channel].name, { concurrency: CONCURRENCY }, (job) =>
      deliverMessage({ ...deps, channels }, job),
    )
  }
  const stopHousekeeping = startHousekeeping(deps, deps.log)
  return () => inOrder(deps.log, [stopHousekeeping, () => deps.queue.stop(5_000), mailer.close])
}
