// Delivery: one attempt of a worker at a message. A message whose link or code was used or replaced meanwhile is not
// sent. Retries: MESSAGE_QUEUES in outbox.ts.
import { PermanentFailure, type QueueJob } from '@services/common/queue/run-job'
import { counted } from '@services/common/telemetry/instruments'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import { safeWords, TemporaryFailure } from '../../adapters/delivery-failures.ts'
import type { DB, MessageChannel } from '../../db/tables.ts'
import { countMessage, countMessageAttempt } from '../../metrics.ts'
import type { Encryption } from '../keys/encryption.ts'
import { SEALED } from '../keys/sealed-columns.ts'
import { restartLifetime } from '../one-time-tokens/one-time-tokens.store.ts'
import { findQueuedMessage, markDropped, markSent, REPLACED, recordFailure } from './messages.store.ts'
import { MESSAGE_QUEUES, type MessageContent, type MessageJob, type MessagePart } from './outbox.ts'
import { lockReported, reportFailed } from './report-failed.ts'
import { NotAttempted, type SilentGroups } from './silent-groups.ts'

/**
 * Message on its way out; `id` is the same at every attempt, so that one sent twice after a crash can be recognised.
 */
export interface OutgoingMessage<Name extends MessageChannel = MessageChannel> extends MessageContent<Name> {
  id: string
  kind: string
  userId: string | null
  /** The same work is done and nothing is handed over. */
  isPretended: boolean
}

export interface Receipt {
  /** Upstream that accepted it: `smtp`, `twilio`, … */
  provider: string
  /** Its id there, if the upstream gives one. */
  providerMessageId: string | null
}

/**
 * Hands a message over. Throws a TemporaryFailure for a retry, even where only a worker with other settings could
 * deliver it, and a PermanentFailure when no retry can help. Admins read the texts of both: they name no address and no
 * code.
 */
export type Channel<Name extends MessageChannel = MessageChannel> = (message: OutgoingMessage<Name>) => Promise<Receipt>

export type Channels = { [Name in MessageChannel]?: Channel<Name> }

export interface DeliveryDeps {
  db: Kysely<DB>
  encryption: Encryption
  now: () => Date
  log: Logger
  channels: Channels
  /** Silent groups of the job's channel. */
  silentGroups: SilentGroups
}

type Queued = NonNullable<Awaited<ReturnType<typeof findQueuedMessage>>>

/** Makes one attempt to deliver. Throws for a retry, after noting the failure. */
export async function deliverMessage(deps: DeliveryDeps, job: QueueJob<MessageJob>): Promise<void> {
  const { db, now } = deps
  const message = await findQueuedMessage(db, job.data.messageId)
  if (!message) return
  const log = deps.log.child({ messageId: message.id, kind: message.kind, userId: message.user_id })
  try {
    await deps.silentGroups.withSlot(job, () => attemptOnce(deps, message, job.group, log))
  } catch (error) {
    const isFinal = error instanceof PermanentFailure || job.retryCount >= MESSAGE_QUEUES[message.channel].retryLimit
    const wasAttempted = !(error instanceof NotAttempted)
    const failure = { error: safeWords(error), isFinal, wasAttempted, now: now() }
    if (!isFinal) {
      await recordFailure(db, message.id, failure)
      throw error
    }
    const hasFailed = await db.transaction().execute(async (trx) => {
      await lockReported(trx, message)
      if (!(await recordFailure(trx, message.id, failure))) return false
      await reportFailed(trx, { ...message, last_error: failure.error })
      return true
    })
    // Otherwise a newer message replaced it meanwhile, or another attempt ended it.
    if (hasFailed) {
      countMessage(message.channel, message.kind, 'failed')
      log.error({ reason: failure.error }, 'message given up')
    }
    throw error
  }
}

async function attemptOnce(deps: DeliveryDeps, message: Queued, group: string | undefined, log: Logger): Promise<void> {
  const { db, now } = deps
  const content = await stillGood(deps, message, openSealed(deps, message))
  if (!content) {
    log.info('message dropped: its link or code was used or replaced meanwhile')
    await markDropped(db, message.id, REPLACED, now())
    return countMessage(message.channel, message.kind, 'dropped')
  }
  if (isPretended(message)) {
    await send(deps, message, content)
    log.info('message not sent, only pretended')
    return markDropped(db, message.id, null, now())
  }
  const countAttempt = (result: string) => countMessageAttempt(message.channel, result === 'ok' ? 'sent' : 'failed')
  const receipt = await counted(countAttempt, () =>
    deps.silentGroups.observe(group, () => send(deps, message, content)),
  )
  log.info({ provider: receipt.provider }, 'message sent')
  await markSent(db, message.id, { ...receipt, now: now() })
  countMessage(message.channel, message.kind, 'sent')
}

function send<Name extends MessageChannel>(
  { channels }: DeliveryDeps,
  { id, channel, kind, user_id: userId, lifetime_seconds }: Queued & { channel: Name },
  content: MessageContent<Name>,
): Promise<Receipt> {
  const deliver = channels[channel]
  if (!deliver) throw new TemporaryFailure(`nothing delivers ${channel} messages here`)
  return deliver({ ...content, id, kind, userId, isPretended: lifetime_seconds === 0 })
}

const isPretended = (message: Queued) => message.lifetime_seconds === 0

/** Restarts the lifetimes of links and codes and returns the content to send; undefined: all were used or replaced. */
async function stillGood(
  deps: DeliveryDeps,
  message: Queued,
  content: MessageContent,
): Promise<MessageContent | undefined> {
  const parts: MessagePart[] = []
  for (const part of [content, content.second]) {
    const good = part && (await restarted(deps, message, part))
    if (good) parts.push(good)
  }
  const [first, second] = parts
  return first && { ...content, ...first, second }
}

/**
 * Restarts the lifetime of link and code and returns the part to send; undefined: both were used or replaced. A
 * replaced link that stays valid is sent without a dead code, which would cost the newer one an attempt.
 */
async function restarted(deps: DeliveryDeps, message: Queued, part: MessagePart): Promise<MessagePart | undefined> {
  const { user_id, lifetime_seconds: lifetimeSeconds } = message
  // A pretended message without a user is searched for too, as a real one is.
  const userId = user_id ?? (isPretended(message) ? message.id : null)
  if (lifetimeSeconds === null || userId === null) return part
  const { linkHash, codeHash, repeatsCode = false } = part
  if (!linkHash && !codeHash) return part
  const now = deps.now()
  const token = { linkHash: bytesOf(linkHash), codeHash: bytesOf(codeHash), repeatsCode }
  const expiresAt = new Date(now.getTime() + lifetimeSeconds * 1000)
  const found = await restartLifetime(deps.db, userId, token, { expiresAt, now })
  if (found && !found.hasCode) return { ...part, variables: { ...part.variables, Token: '' } }
  return found || isPretended(message) ? part : undefined
}

const bytesOf = (hash: string | undefined) => (hash === undefined ? null : Buffer.from(hash, 'base64'))

/** While a change of keys rolls out another worker may be able to open the message: it goes back to the queue. */
function openSealed({ encryption }: DeliveryDeps, message: Queued): MessageContent {
  try {
    return encryption.open(SEALED.message, message)
  } catch (cause) {
    throw new TemporaryFailure(`it is ${(cause as Error).message}`, { cause })
  }
}
