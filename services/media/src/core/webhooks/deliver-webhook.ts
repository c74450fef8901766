// Webhooks; this file makes one attempt. A slow receiver delays only its own events: it has few slots, and none while
// it does not answer. A delivery over the limit waits without a job until a finishing one or housekeeping queues it.
// Tests: test/webhooks.test.ts.
//
// delivery.state | next_attempt_at                        | next
// pending        | due, or 5 min ahead during an attempt  | delivered, pending after the back-off, failed
// delivered      | null                                   | pending on replay
// failed         | null: a day of attempts, or refused    | pending on replay
import { ApiError } from '@services/common/errors'
import { outsideTrace } from '@services/common/telemetry/spans'
import {
  type AttemptResult,
  pauseAfter,
  reasonToDisable,
  resultOfStatus,
} from '@services/common/webhooks/attempt-result'
import { signMessage } from '@services/common/webhooks/sign-message'
import type { Transaction } from 'kysely'
import { ADMIN_EVENTS, type DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { countDelivery } from '../../metrics.ts'
import { allows } from '../tokens/scopes.ts'
import {
  beginAttempt,
  type Delivery,
  endDelivery,
  findAttempt,
  lockAttempt,
  postponeDelivery,
  restartDelivery,
  takeDue,
  takeOverdue,
} from './deliveries.store.ts'
import { sendJob, TRY_FOR_MS, type WebhookJob, waitAfter } from './webhook-queue.ts'
import { unsealSecret } from './webhook-secret.ts'
import { enableWebhook, lockWebhook, recordFailure, recordSuccess } from './webhooks.store.ts'

type DeliveryDeps = Pick<Deps, 'db' | 'queue' | 'remote' | 'config' | 'now' | 'log' | 'timeLimits' | 'receivers'>
type Attempt = NonNullable<Awaited<ReturnType<typeof findAttempt>>>

/** Longer than an attempt may take: one that has not ended by then was lost with its process. */
const LOST_AFTER_MS = 300_000

/** Attempts at once of one receiver in one process; a failing receiver gets one. */
const AT_ONCE = 2

/** Spread of the attempts after a pause. */
const [SHORTEST_WAIT_MS, LONGEST_WAIT_MS] = [1_000, 10_000]

/** A queued delivery has begun by then, or the next that ends queues it again. */
const QUEUED_FOR_MS = 60_000

export async function deliverWebhook(deps: DeliveryDeps, job: { data: WebhookJob }): Promise<void> {
  const { receivers } = deps
  const now = deps.now()
  const attempt = await findAttempt(deps.db, job.data, now)
  if (!attempt) return
  const { receiver } = attempt
  const error = refusalOf(attempt, now)
  if (error) {
    await deps.db.transaction().execute((trx) => endDelivery(trx, attempt, 'failed', { ...lastOf(attempt), error }))
    countDelivery('failed')
    return queueNext(deps, receiver.id, { slots: 1 })
  }
  const pauseMs = (receiver.paused_until?.getTime() ?? 0) - now.getTime()
  if (pauseMs > 0) return postpone(deps, attempt, pauseMs + between(SHORTEST_WAIT_MS, LONGEST_WAIT_MS))
  const slots = receiver.failures > 0 ? 1 : AT_ONCE
  if (receivers.busyAt(receiver.id) >= slots) {
    await postponeDelivery(deps.db, attempt.id, now)
    // The attempts under way may have ended meanwhile, before this one was due.
    if (receivers.busyAt(receiver.id) < slots) await queueNext(deps, receiver.id, { slots: 1 })
    return
  }
  const leave = receivers.enter(receiver.id)
  let next: Next = { slots: AT_ONCE }
  try {
    const until = new Date(now.getTime() + LOST_AFTER_MS)
    if (await beginAttempt(deps.db, attempt, { now, until })) next = await attemptOnce(deps, attempt)
  } finally {
    leave()
  }
  await queueNext(deps, receiver.id, { ...next, slots: next.slots - receivers.busyAt(receiver.id) })
}

/** Reason for which an attempt is not made. The token may have ended, or lost its scope, while the event waited. */
function refusalOf({ receiver, type, give_up_at: giveUpAt }: Attempt, now: Date): string | undefined {
  const { scopes } = receiver
  if (!scopes) return 'token_ended'
  if (ADMIN_EVENTS.some((event) => event === type) && !allows({ scopes }, 'admin')) return 'insufficient_scope'
  if (receiver.disabled_at) return 'disabled'
  return now > giveUpAt ? 'given_up' : undefined
}

/** Free slots of the receiver, and the delay before they may be used. */
interface Next {
  slots: number
  waitMs?: number
}

async function queueNext(
  { db, queue, now }: Pick<Deps, 'db' | 'queue' | 'now'>,
  receiverId: string,
  { slots, waitMs = 0 }: Next,
): Promise<void> {
  if (slots <= 0) return
  const moment = now()
  const until = new Date(moment.getTime() + waitMs + QUEUED_FOR_MS)
  await db.transaction().execute(async (trx) => {
    const next = await takeDue(trx, receiverId, { now: moment, until, limit: slots })
    for (const { id, attempts, owner } of next) {
      // The event belongs to another request.
      await outsideTrace(() => sendJob(queue, trx, { deliveryId: id, attempt: attempts }, { owner, waitMs }))
    }
  })
}

/** Queues deliveries whose jobs were lost; returns their number. */
export async function rescueDeliveries(
  { db, queue, now }: Pick<Deps, 'db' | 'queue' | 'now'>,
  limit: number,
): Promise<number> {
  const moment = now()
  const before = new Date(moment.getTime() - LOST_AFTER_MS)
  return db.transaction().execute(async (trx) => {
    const overdue = await takeOverdue(trx, { before, now: moment, limit })
    for (const { id, attempts, owner } of overdue) {
      await sendJob(queue, trx, { deliveryId: id, attempt: attempts }, { owner })
    }
    return overdue.length
  })
}

async function attemptOnce(deps: DeliveryDeps, attempt: Attempt): Promise<Next> {
  const result = await send(deps, attempt)
  const { id, receiver } = attempt
  const own = { id, attempts: attempt.attempts + 1 }
  if (result.error === null) {
    await deps.db.transaction().execute(async (trx) => {
      // Lock order of a deletion: see `lockWebhook`.
      await recordSuccess(trx, receiver.id)
      await endDelivery(trx, own, 'delivered', result)
    })
    countDelivery('delivered')
    return { slots: AT_ONCE }
  }
  const now = deps.now()
  // Judged by the rows as they are now: other attempts may have ended meanwhile, and this event been sent again.
  const { isLast, isDisabled, pauseMs } = await deps.db.transaction().execute(async (trx) => {
    const current = await lockWebhook(trx, receiver.id)
    const delivery = await lockAttempt(trx, own)
    const failures = (current?.failures ?? 0) + 1
    // A receiver that refuses at once costs nothing, and may accept the next event.
    const pauseMs = result.status === null ? pauseAfter(failures) : 0
    const isDisabled = current?.disabled_at === null && reasonToDisable(current, result, now) !== undefined
    const pausedUntil = pauseMs > 0 ? new Date(now.getTime() + pauseMs) : null
    await recordFailure(trx, receiver.id, { now, pausedUntil, disabledAt: isDisabled ? now : null })
    if (!delivery) return { isLast: false, isDisabled, pauseMs }
    const waitMs = waitAfter(Math.max(1, own.attempts - delivery.attempts_before))
    const isLast = now.getTime() + waitMs > delivery.give_up_at.getTime()
    if (isLast || isDisabled) await endDelivery(trx, own, 'failed', result)
    else {
      await postponeDelivery(trx, id, new Date(now.getTime() + waitMs), result)
      await sendJob(deps.queue, trx, { deliveryId: id, attempt: own.attempts }, { owner: receiver.token_id, waitMs })
    }
    return { isLast, isDisabled, pauseMs }
  })
  countDelivery(isLast || isDisabled ? 'failed' : 'retried')
  const facts = { webhookId: receiver.id, deliveryId: id, ...result }
  if (isDisabled) deps.log.warn(facts, 'webhook disabled: receiver answered 410 or failed for days')
  else if (isLast) deps.log.warn(facts, 'webhook delivery given up: receiver failed for a day')
  else deps.log.info(facts, 'webhook delivery failed, will retry')
  return { slots: 1, waitMs: pauseMs }
}

/** Never throws for anything the receiver does. */
async function send(deps: DeliveryDeps, { id, payload, receiver }: Attempt): Promise<AttemptResult> {
  try {
    const { status } = await deps.remote.post(receiver.url, {
      ...(await signed(deps, receiver.secret, { id, body: JSON.stringify(payload) })),
      totalMs: deps.timeLimits.webhookAnswerMs,
    })
    return resultOfStatus(status)
  } catch (err) {
    if (!(err instanceof ApiError)) {
      deps.log.error({ err, webhookId: receiver.id }, 'webhook delivery not sent')
      return { status: null, error: 'internal' }
    }
    return { status: null, error: String(err.details?.upstream ?? 'forbidden_address') }
  }
}

async function signed({ config, now }: DeliveryDeps, stored: string, { id, body }: { id: string; body: string }) {
  const secret = unsealSecret(config.encryptionKey, stored)
  return { body, headers: await signMessage([secret], { id: `msg_${id}`, body, timestamp: now() }) }
}

async function postpone({ db, queue, now }: DeliveryDeps, { id, attempts, receiver }: Attempt, waitMs: number) {
  await db.transaction().execute(async (trx) => {
    await postponeDelivery(trx, id, new Date(now().getTime() + waitMs))
    await sendJob(queue, trx, { deliveryId: id, attempt: attempts }, { owner: receiver.token_id, waitMs })
  })
}

const lastOf = ({ last_status: status, last_error: error }: Attempt): AttemptResult => ({ status, error })

const between = (from: number, to: number) => from + Math.random() * (to - from)

/** Sends an event again, now and with retries for another day. Also enables the webhook and clears its failures. */
export async function replayDelivery(
  { db, queue, now }: Pick<Deps, 'db' | 'queue' | 'now'>,
  { owner, ...delivery }: { id: string; webhookId: string; owner: string },
  alongside?: (trx: Transaction<DB>) => Promise<unknown>,
): Promise<Delivery | undefined> {
  const moment = now()
  const giveUpAt = new Date(moment.getTime() + TRY_FOR_MS)
  return db.transaction().execute(async (trx) => {
    if (!(await lockWebhook(trx, delivery.webhookId))) return undefined
    const restarted = await restartDelivery(trx, delivery, { now: moment, giveUpAt })
    if (!restarted) return undefined
    await enableWebhook(trx, delivery.webhookId)
    await alongside?.(trx)
    await sendJob(queue, trx, { deliveryId: restarted.id, attempt: restarted.attempts }, { owner, isRetry: false })
    return restarted
  })
}
