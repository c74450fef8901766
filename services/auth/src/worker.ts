import { inOrder } from '@services/common/process/shutdown'
import { openMailTemplates, TEMPLATE_WAIT_MS } from './adapters/mail/mail-templates.ts'
import { ANSWER_WITHIN_MS, createMailer, MAX_CONNECTIONS } from './adapters/mail/smtp.ts'
import { createSmsSender } from './adapters/sms/send-sms.ts'
import { mailHookChannel, smsHookChannel } from './core/message-hooks/hook-channels.ts'
import { startLogoutNotices } from './core/oauth-server/logout/send-notices.ts'
import { mailChannel, smsChannel } from './core/outbox/channels.ts'
import { type Channels, deliverMessage } from './core/outbox/deliver-message.ts'
import { waitForMoment } from './core/outbox/job-delay.ts'
import { MESSAGE_QUEUES, type MessageJob } from './core/outbox/outbox.ts'
import { createSilentGroups } from './core/outbox/silent-groups.ts'
import { MESSAGE_REQUEST_QUEUE, type MessageRequestJob } from './core/verification-messages/message-request.ts'
import { startDispatcher, ANSWER_WITHIN_MS as WEBHOOK_ANSWER_WITHIN_MS } from './core/webhooks/dispatcher.ts'
import type { MessageChannel } from './db/tables.ts'
import type { Deps } from './deps.ts'
import { answerMessageRequest } from './flows/message-requests/answer-message-request.ts'
import { startHousekeeping } from './housekeeping.ts'

/** A domain or block of numbers that answers has at most half of the slots, and so have all retries together. */
const slotsOf = (concurrency: number) => {
  const half = Math.ceil(concurrency / 2)
  return { concurrency, maxPerTenant: half, maxRetries: half }
}

const DEFAULTS = {
  messages: MAX_CONNECTIONS,
  /** Message requests at once; each is some statements. */
  requests: 4,
  mailAnswerWithinMs: ANSWER_WITHIN_MS,
  templateWaitMs: TEMPLATE_WAIT_MS,
  webhookAnswerWithinMs: WEBHOOK_ANSWER_WITHIN_MS,
}

/**
 * Delivers the outbox and events, and deletes expired rows; runs inside the service or as a separate process
 * (`worker`).
 */
export async function startWorker(deps: Deps, limits: Partial<typeof DEFAULTS> = {}): Promise<() => Promise<void>> {
  const { queue, config, log } = deps
  const { messages, requests, mailAnswerWithinMs, templateWaitMs, webhookAnswerWithinMs } = { ...DEFAULTS, ...limits }
  const templates = openMailTemplates(deps, templateWaitMs)
  const mailer = createMailer(config.smtp, { answerWithinMs: mailAnswerWithinMs })
  const channels: Channels = {
    mail: config.mail.byHook
      ? mailHookChannel({ ...deps, isRepeated: true }, templates)
      : mailChannel(deps.config, templates, mailer),
    sms: config.sms.byHook
      ? smsHookChannel({ ...deps, isRepeated: true })
      : smsChannel(createSmsSender(config.sms, log)),
  }
  void templates.loadRemote()
  for (const channel of Object.keys(channels) as MessageChannel[]) {
    const silentGroups = createSilentGroups(messages)
    await queue.work<MessageJob>(MESSAGE_QUEUES[channel].name, slotsOf(messages), async (job) => {
      await waitForMoment(deps, job)
      await deliverMessage({ ...deps, channels, silentGroups }, job)
    })
  }
  await queue.work<MessageRequestJob>(MESSAGE_REQUEST_QUEUE.name, { concurrency: requests }, async (job) => {
    await waitForMoment(deps, job)
    await answerMessageRequest(deps, job)
  })
  const stopDispatcher = startDispatcher(deps, { answerWithinMs: webhookAnswerWithinMs })
  const stopNotices = startLogoutNotices(deps)
  const stopHousekeeping = startHousekeeping(deps, log)
  return () => inOrder(log, [stopHousekeeping, stopNotices, stopDispatcher, () => queue.stop(5_000), mailer.close])
}
