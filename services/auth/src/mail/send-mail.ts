import type { KeyObject } from 'node:crypto'
import type { Logger } from '@services/common/logger'
import type { QueueJob } from '@services/common/queue'
import { unseal } from '@services/common/sealed'
import { builtInHtml, builtInText } from './built-in.ts'
import type { MailJob, SealedMail } from './outbox.ts'
import type { Mailer } from './smtp.ts'
import { escapeHtml, renderTemplate, singleLine } from './template.ts'

export interface SendMailDeps {
  mailer: Mailer
  outboxKey: KeyObject
  now: () => Date
  log: Logger
  config: { mail: { subjects: Record<string, string> } }
}

/** The worker's half of the outbox: renders one mail and hands it to the mail server; throws for a retry. */
export async function sendMail(deps: SendMailDeps, job: QueueJob<MailJob>): Promise<void> {
  const { kind, userId, sealed, expiresAt } = job.data
  const log = deps.log.child({ jobId: job.id, kind, userId })
  if (new Date(expiresAt) <= deps.now()) {
    log.warn('mail dropped: its link expired before it could be sent')
    return
  }
  const { to, variables } = unseal<SealedMail>(deps.outboxKey, sealed)
  await deps.mailer.send({
    id: job.id,
    to,
    subject: singleLine(renderTemplate(deps.config.mail.subjects[kind] ?? '', variables, (text) => text)),
    html: renderTemplate(builtInHtml(kind), variables, escapeHtml),
    text: renderTemplate(builtInText(kind), variables, (text) => text),
  })
  log.info('mail sent')
}
