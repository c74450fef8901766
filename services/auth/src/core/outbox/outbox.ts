// Mail and SMS on their way out. A message is a row and a job, written in the transaction of the rows it belongs to. A
// rollback takes it back and a crash loses nothing. How it is retried: MESSAGE_QUEUES below, and deliver-message.ts.
// A domain or block of numbers whose messages hang does not delay others: silent-groups.ts, and the slots in worker.ts.
//
// | State | Reached by | Left by |
// | --- | --- | --- |
// | queued | queueMessage; an admin's retry of a failed one (flows/admin/messages/resend-failed-message.ts) | each attempt to deliver it |
// | sent | the mail server or gateway has accepted it | |
// | dropped | its link or code was used or replaced meanwhile, or it was only pretended | |
// | failed | a failure that no retry can help, the last retry, or a lost job (housekeeping) | an admin's retry |
//
// Tests: outbox.test.ts, deliver-message.test.ts, slow-recipients.test.ts, outbox.slow.test.ts (retries).
import type { KeyObject } from 'node:crypto'
import type { Queue } from '@services/common/queue/queue'
import type { QueueDefinition } from '@services/common/queue/queue-definition'
import type { Transaction } from 'kysely'
import type { MailKind, VariablesOf } from '../../adapters/mail/kinds.ts'
import type { SmsChannel } from '../../adapters/sms/gateway.ts'
import type { DB, MessageChannel, Metadata, TokenPurpose } from '../../db/tables.ts'
import type { Encryption } from '../keys/encryption.ts'
import { SEALED } from '../keys/sealed-columns.ts'
import { hashLinkToken } from '../one-time-tokens/one-time-token.ts'
import { type DelayedJob, notBefore } from './job-delay.ts'
import { insertMessage } from './messages.store.ts'
import { recipientGroup } from './recipient-group.ts'
import { attemptedByRequest, sendingRequest } from './sending-request.ts'

const BOTH = { retryDelaySeconds: 1, expireInSeconds: 120, heartbeatSeconds: 10 }

/** One queue per channel: a mail server that hangs must not hold up codes by SMS. */
export const MESSAGE_QUEUES: Record<MessageChannel, QueueDefinition> = {
  /** A day of retries, 1 s apart at first and 5 min at last: longer than any mail server's maintenance. */
  mail: { ...BOTH, name: 'mail', retryLimit: 300, retryDelayMaxSeconds: 300 },
  /** About ten minutes: the user is waiting for this code, and has requested another one by then. */
  sms: { ...BOTH, name: 'sms', retryLimit: 14, retryDelayMaxSeconds: 60 },
}

/** Wait before a worker takes a message that its request attempts first: longer than any request. */
const IF_REQUEST_DIES_SECONDS = 120

export interface MessageJob extends DelayedJob {
  messageId: string
}

/** Kind of the SMS with the code of a second factor, as GET /admin/messages shows it. */
export const FACTOR_CODE_KIND = 'second_factor'

export interface SmsVariables {
  code: string
  channel: SmsChannel
  /** Filled in from the template of the instance that received the request. */
  text: string
  /** Metadata of the user that a hook may show the recipient. */
  data?: Metadata | undefined
}

interface Variables {
  mail: VariablesOf<MailKind>
  sms: SmsVariables
}

/** Recipient, link and code of a message. */
export interface MessagePart<Channel extends MessageChannel = MessageChannel> {
  to: string
  variables: Variables[Channel]
  /** Base64 of the hashes by which link and code of the message are stored; neither for a message without them. */
  linkHash: string | undefined
  codeHash: string | undefined
  /** An earlier message starts the lifetime of the code. */
  repeatsCode: boolean | undefined
}

/** Part of a message that is stored sealed: only its delivery reads it. */
export interface MessageContent<Channel extends MessageChannel = MessageChannel> extends MessagePart<Channel> {
  locale: string | undefined
  /** Mail to the other address of a change, which a hook sends with this one. */
  second?: MessagePart<Channel> | undefined
  /** Base of the mail's link, and address of the client that caused the message: a hook learns both. */
  externalUrl?: string | undefined
  ip?: string | undefined
}

interface NewPart<Content> {
  to: string
  variables: Content
  /** Hash of the code: finds its token when the message leaves. */
  codeHash?: Buffer | undefined
  /** The code is that of an earlier message, and its lifetime goes on. */
  repeatsCode?: boolean | undefined
}

interface NewRow<Channel extends MessageChannel, Kind, Content> extends NewPart<Content> {
  channel: Channel
  kind: Kind
  userId: string | null
  /** Id that was promised to a caller before. */
  messageId?: string | undefined
  /** Locale from pickLocale; MAILER_DEFAULT_LOCALE when left out. */
  locale?: string | undefined
  /** Base of the mail's link. */
  externalUrl?: string | undefined
  /** Mail to the other address of a change, in the same message. */
  second?: NewPart<Content> | undefined
  /** Lifetime of link and code from the moment the message leaves; null: it has neither, 0: it is only pretended. */
  lifetimeSeconds: number | null
}

export type NewMail<Kind extends MailKind = MailKind> = { [K in Kind]: NewRow<'mail', K, VariablesOf<K>> }[Kind]
export type NewSms = NewRow<'sms', TokenPurpose | typeof FACTOR_CODE_KIND | 'account_exists', SmsVariables>

export interface OutboxDeps {
  queue: Queue
  /** Hides recipients in the queue. */
  outboxKey: KeyObject
  encryption: Encryption
  newId: () => string
  now: () => Date
  delayMs: () => number
}

/** Writes a message into the outbox, in the caller's transaction; a worker sends it after commit. Returns its id. */
export async function queueMessage<Kind extends MailKind>(
  deps: OutboxDeps,
  trx: Transaction<DB>,
  message: NewMail<Kind> | NewSms,
): Promise<string> {
  const { channel, kind, userId, to, locale, lifetimeSeconds, second, externalUrl } = message
  const ip = sendingRequest()?.ip
  const content: MessageContent = { ...partOf(message), locale, second: second && partOf(second), externalUrl, ip }
  const id = message.messageId ?? deps.newId()
  const sealed = deps.encryption.seal(SEALED.message, { id }, content)
  const row = { id, channel, kind, user_id: userId, sealed, lifetime_seconds: lifetimeSeconds }
  await insertMessage(trx, row, deps.now())
  // Notifications and codes for a session go to a user who is known to exist; all others may answer a stranger's
  // request.
  const mayBeStrangers = kind === 'account_exists' || (lifetimeSeconds !== null && kind !== 'reauthentication')
  const isAttempted = attemptedByRequest(id, channel, kind)
  await queueJob(deps, trx, { id, channel, to }, mayBeStrangers && !isAttempted ? notBefore(deps) : 0, isAttempted)
  return id
}

function partOf({ to, variables, codeHash, repeatsCode }: NewPart<Variables[MessageChannel]>): MessagePart {
  const linkHash = 'TokenHash' in variables ? hashLinkToken(variables.TokenHash).toString('base64') : undefined
  return { to, variables, linkHash, codeHash: codeHash?.toString('base64'), repeatsCode }
}

/** Recipient of a stored message, or '' if its key is unknown here: only a worker that has the key can send it. */
export function recipientOf(
  { encryption }: Pick<OutboxDeps, 'encryption'>,
  message: { id: string; sealed: string | null },
): string {
  try {
    const { to }: MessageContent = encryption.open(SEALED.message, message)
    return to
  } catch {
    return ''
  }
}

export async function queueJob(
  { queue, outboxKey }: Pick<OutboxDeps, 'queue' | 'outboxKey'>,
  trx: Transaction<DB>,
  { id, channel, to }: { id: string; channel: MessageChannel; to: string },
  notBefore = 0,
  isAttempted = false,
): Promise<void> {
  const job: MessageJob = { messageId: id, notBefore }
  const how = {
    group: recipientGroup(outboxKey, channel, to),
    ...(isAttempted && { afterSeconds: IF_REQUEST_DIES_SECONDS }),
  }
  await queue.send(trx, MESSAGE_QUEUES[channel].name, job, how)
}
