import type { KeyObject } from 'node:crypto'
import type { Logger } from '@services/common/logger'
import { PermanentFailure, type QueueJob } from '@services/common/queue'
import { unseal } from '@services/common/sealed'
import type { Kysely } from 'kysely'
import type { DB } from '../db/tables.ts'
import { hashLinkToken } from '../one-time-tokens/one-time-token.ts'
import { restartLifetime } from '../one-time-tokens/one-time-tokens.store.ts'
import { builtInHtml, builtInText } from './built-in.ts'
import type { MailJob, SealedMail } from './outbox.ts'
import type { Mailer } from './smtp.ts'
import { escapeHtml, renderTemplate, singleLine } from './template.ts'

export interface SendMailDeps {
  db: Kysely<DB>
  mailer: Mailer
  outboxKey: KeyObject
  now: () => Date
  log: Logger
  config: { mail: { subjects: Record<string, string> } }
}

/** The worker's half of the outbox: renders one mail and hands it to the mail server; throws for a retry. */
export async function sendMail(deps: SendMailDeps, job: QueueJob<MailJob>): Promise<void> {
  const { kind, userId, lifetimeSeconds } = job.data
  if (lifetimeSeconds === 0) return
  const log = deps.log.child({ jobId: job.id, kind, userId })
  const { to, variables } = openSealed(deps, job.data)
  const expiresAt = new Date(deps.now().getTime() + lifetimeSeconds * 1000)
  if (!(await restartLifetime(deps.db, userId, hashLinkToken(String(variables.TokenHash)), expiresAt))) {
    log.info('mail dropped: its link was used or replaced meanwhile')
    return
  }
  await deps.mailer.send({
    id: job.id,
    to,
    subject: singleLine(renderTemplate(deps.config.mail.subjects[kind] ?? '', variables, (text) => text)),
    html: renderTemplate(builtInHtml(kind), variables, escapeHtml),
    text: renderTemplate(builtInText(kind), variables, (text) => text),
  })
  log.info('mail sent')
}

function openSealed(deps: SendMailDeps, { sealed }: MailJob): SealedMail {
  try {
    return unseal<SealedMail>(deps.outboxKey, sealed)
  } catch (error) {
    throw new PermanentFailure('the mail was sealed under another JWT_SECRET', { cause: error })
  }
}
