import type { KeyObject } from 'node:crypto'
import type { Queue, QueueDefinition } from '@services/common/queue'
import { seal } from '@services/common/sealed'
import type { Transaction } from 'kysely'
import type { DB } from '../db/tables.ts'
import type { MAIL_KINDS } from './kinds.ts'
import type { TemplateVariables } from './template.ts'

/** A day of tries, 1 s apart at first and 5 min at last: longer than any mail server's maintenance. */
export const MAIL_QUEUE: QueueDefinition = {
  name: 'mail',
  retryLimit: 300,
  retryDelaySeconds: 1,
  retryDelayMaxSeconds: 300,
  expireInSeconds: 120,
  heartbeatSeconds: 10,
}

export type MailKind = keyof typeof MAIL_KINDS

export interface MailJob {
  kind: MailKind
  userId: string
  /** Recipient and variables; sealed, because links and codes are stored nowhere in the clear. */
  sealed: string
  /** How long link and code live from when the mail leaves; 0: a mail that is only pretended and never leaves. */
  lifetimeSeconds: number
}

export interface SealedMail {
  to: string
  variables: TemplateVariables
}

export interface OutboxDeps {
  queue: Queue
  outboxKey: KeyObject
}

/** Writes a mail into the outbox, in the transaction of the rows it belongs to; a worker sends it after commit. */
export async function queueMail(
  { queue, outboxKey }: OutboxDeps,
  trx: Transaction<DB>,
  mail: {
    kind: MailKind
    userId: string
    to: string
    variables: TemplateVariables
    lifetimeSeconds: number
    messageId?: string | undefined
  },
): Promise<void> {
  const content: SealedMail = { to: mail.to, variables: mail.variables }
  const job: MailJob = {
    kind: mail.kind,
    userId: mail.userId,
    sealed: seal(outboxKey, content),
    lifetimeSeconds: mail.lifetimeSeconds,
  }
  await queue.send(trx, MAIL_QUEUE.name, job)
}
