import type { KeyObject } from 'node:crypto'
import { counted } from '@services/common/instruments'
import type { Logger } from '@services/common/logger'
import { PermanentFailure, type QueueJob } from '@services/common/queue'
import { unseal } from '@services/common/sealed'
import type { Kysely } from 'kysely'
import { safeWords, TemporaryFailure } from '../../adapters/delivery-failures.ts'
import type { DB, MessageChannel } from '../../db/tables.ts'
import { countMessage, countMessageTry } from '../../metrics.ts'
import { restartLifetime } from '../one-time-tokens/one-time-tokens.store.ts'
import { findQueuedMessage, markDropped, markSent, noteFailure } from './messages.store.ts'
import { MESSAGE_QUEUES, type MessageContent, type MessageJob } from './outbox.ts'

/** A message on its way out; `id` is the same at every try, so that one sent twice after a crash can be recognised. */
export interface OutgoingMessage extends MessageContent {
  id: string
  kind: string
  userId: string | null
  /** All is done for it but the handing over. */
  isPretended: boolean
}

export interface Receipt {
  /** Who took it: `smtp`, `twilio`, … */
  provider: string
  /** Under which id, if they say so. */
  providerMessageId: string | null
}

/**
 * Hands a message over. Throws a TemporaryFailure for a retry, also where only a worker with other settings may do better, a
 * PermanentFailure when no retry can help; the texts of both are shown to admins and must name no address and no code.
 */
export type Channel = (message: OutgoingMessage) => Promise<Receipt>

export type Channels = Partial<Record<MessageChannel, Channel>>

export interface DeliveryDeps {
  db: Kysely<DB>
  outboxKey: KeyObject
  now: () => Date
  log: Logger
  channels: Channels
}

type Queued = NonNullable<Awaited<ReturnType<typeof findQueuedMessage>>>

/** The worker's half of the outbox: one try. Throws for a retry, after noting what went wrong. */
export async function deliverMessage(deps: DeliveryDeps, job: QueueJob<MessageJob>): Promise<void> {
  const { db, now } = deps
  const message = await findQueuedMessage(db, job.data.messageId)
  if (!message) return
  const log = deps.log.child({ messageId: message.id, kind: message.kind, userId: message.user_id })
  try {
    const content = await stillGood(deps, message, openSealed(deps, message))
    if (!content) {
      log.info('message dropped: its link or code was used or replaced meanwhile')
      await markDropped(db, message.id, 'its link or code was used or replaced meanwhile', now())
      return countMessage(message.channel, message.kind, 'dropped')
    }
    if (isPretended(message)) {
      await send(deps, message, content)
      log.info('message pretended')
      return markDropped(db, message.id, null, now())
    }
    const countTry = (result: string) => countMessageTry(message.channel, result === 'ok' ? 'sent' : 'failed')
    const receipt = await counted(countTry, () => send(deps, message, content))
    log.info({ provider: receipt.provider }, 'message sent')
    await markSent(db, message.id, { ...receipt, now: now() })
    countMessage(message.channel, message.kind, 'sent')
  } catch (error) {
    const isFinal = error instanceof PermanentFailure || job.retryCount >= MESSAGE_QUEUES[message.channel].retryLimit
    await noteFailure(db, message.id, { error: safeWords(error), isFinal, now: now() })
    if (!isFinal) throw error
    countMessage(message.channel, message.kind, 'failed')
    log.error({ reason: safeWords(error) }, 'message given up')
    throw error
  }
}

function send({ channels }: DeliveryDeps, message: Queued, content: MessageContent): Promise<Receipt> {
  const channel = channels[message.channel]
  if (!channel) throw new TemporaryFailure(`nothing delivers ${message.channel} messages here`)
  const { id, kind, user_id: userId } = message
  return channel({ ...content, id, kind, userId, isPretended: isPretended(message) })
}

const isPretended = (message: Queued) => message.lifetime_seconds === 0

/**
 * Returns what of a message is still good, from now on; undefined: it is not worth sending any more. One whose link was replaced and
 * stays good goes without its code, which would only cost an attempt at the newer one.
 */
async function stillGood(
  deps: DeliveryDeps,
  message: Queued,
  content: MessageContent,
): Promise<MessageContent | undefined> {
  const { user_id, lifetime_seconds: lifetimeSeconds } = message
  // A pretended one of nobody is looked for, too, as a real one of somebody is.
  const userId = user_id ?? (isPretended(message) ? message.id : null)
  if (lifetimeSeconds === null || userId === null) return content
  const now = deps.now()
  const times = { expiresAt: new Date(now.getTime() + lifetimeSeconds * 1000), now }
  const { linkHash, codeHash } = content
  const token = linkHash
    ? ({ by: 'token_hash', hash: linkHash } as const)
    : ({ by: 'code_hash', hash: codeHash } as const)
  if (!token.hash) return content
  const found = await restartLifetime(deps.db, userId, { ...token, hash: Buffer.from(token.hash, 'base64') }, times)
  if (found === 'earlier') return { ...content, variables: { ...content.variables, Token: '' } }
  return found || isPretended(message) ? content : undefined
}

/** What one worker cannot open, another one can while a change of the secret rolls out: it goes back to the queue. */
function openSealed({ outboxKey }: DeliveryDeps, { sealed }: Queued): MessageContent {
  try {
    return unseal<MessageContent>(outboxKey, sealed ?? '')
  } catch (error) {
    throw new TemporaryFailure('it was sealed under another JWT_SECRET', { cause: error })
  }
}
