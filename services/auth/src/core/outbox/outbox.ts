// What leaves the service: mail and SMS. The one rule: a message is a row and a job of the transaction of the rows it
// belongs to, so a rollback takes it back and a crash loses nothing. Delivery: deliver-message.ts; its state: GET /admin/messages.
import type { KeyObject } from 'node:crypto'
import type { QueueDefinition } from '@services/common/declare-queue'
import type { Queue } from '@services/common/queue'
import { seal } from '@services/common/sealed'
import type { Transaction } from 'kysely'
import type { DB, MessageChannel } from '../../db/tables.ts'
import { type DelayedJob, notBefore } from './job-delay.ts'
import { insertMessage } from './messages.store.ts'

/** One queue per channel: a mail server that hangs must not hold up codes by SMS. */
export const MESSAGE_QUEUES: Record<MessageChannel, QueueDefinition> = {
  /** A day of tries, 1 s apart at first and 5 min at last: longer than any mail server's maintenance. */
  mail: {
    name: 'mail',
    retryLimit: 300,
    retryDelaySeconds: 1,
    retryDelayMaxSeconds: 300,
    expireInSeconds: 120,
    heartbeatSeconds: 10,
  },
  /** About ten minutes: somebody waits for this code, and has asked for another one by then. */
  sms: {
    name: 'sms',
    retryLimit: 14,
    retryDelaySeconds: 1,
    retryDelayMaxSeconds: 60,
    expireInSeconds: 120,
    heartbeatSeconds: 10,
  },
}

export interface MessageJob extends DelayedJob {
  messageId: string
}

/** What only the one who delivers may see. */
export interface MessageContent {
  to: string
  variables: Record<string, unknown>
  locale: string | undefined
  /** Base64 of the hashes by which the token in the message is stored; neither for a message without one. */
  linkHash: string | undefined
  codeHash: string | undefined
}

export interface NewMessage {
  channel: MessageChannel
  kind: string
  userId: string | null
  to: string
  variables: object
  /** Where the id was promised to a caller before. */
  messageId?: string | undefined
  locale?: string | undefined
  /** The hash of its link token or of its code, under which the token is found when the message leaves. */
  linkHash?: Buffer | undefined
  codeHash?: Buffer | undefined
  /**
   * How long link and code live from when the message leaves; null: it has none. 0: a message that is only pretended,
   * which costs what a real one does and never leaves.
   */
  lifetimeSeconds: number | null
}

export interface OutboxDeps {
  queue: Queue
  outboxKey: KeyObject
  newId: () => string
  now: () => Date
  delayMs: () => number
}

/** Writes a message into the outbox, in the caller's transaction; a worker sends it after commit. Returns its id. */
export async function queueMessage(deps: OutboxDeps, trx: Transaction<DB>, message: NewMessage): Promise<string> {
  const { channel, kind, userId, lifetimeSeconds } = message
  const content: MessageContent = {
    to: message.to,
    variables: { ...message.variables },
    locale: message.locale,
    linkHash: message.linkHash?.toString('base64'),
    codeHash: message.codeHash?.toString('base64'),
  }
  const id = message.messageId ?? deps.newId()
  const sealed = seal(deps.outboxKey, content)
  await insertMessage(trx, { id, channel, kind, userId, sealed, lifetimeSeconds, now: deps.now() })
  await queueJob(deps, trx, { id, channel }, isAskedByAnybody(message) ? notBefore(deps) : 0)
  return id
}

/** Whether a stranger's request may be behind it; notifications and codes for a session go to a user who is known to be there. */
const isAskedByAnybody = ({ kind, lifetimeSeconds }: Pick<NewMessage, 'kind' | 'lifetimeSeconds'>): boolean =>
  lifetimeSeconds !== null && kind !== 'reauthentication'

export async function queueJob(
  { queue }: Pick<OutboxDeps, 'queue'>,
  trx: Transaction<DB>,
  { id, channel }: { id: string; channel: MessageChannel },
  notBefore = 0,
): Promise<void> {
  const job: MessageJob = { messageId: id, notBefore }
  await queue.send(trx, MESSAGE_QUEUES[channel].name, job)
}
