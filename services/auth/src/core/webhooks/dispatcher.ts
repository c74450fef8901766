// Delivers events. Every process with workers claims what is due, at once after its own commits and once a second for
// others'. No receiver waits for another: each has slots of its own, and one that fails has a single one and pauses.
// Events of a user reach a receiver in their order, because only the first that waits is claimed. A round records what
// was accepted since the last one, and claims what is due: under load, three statements for several events.
//
// state     | next_at                                     | next
// waiting   | due, the end of a lease, or put off while   | delivered; waiting after a growing wait, for three days;
//           | an earlier event of the user waits          | failed
// delivered | null                                        | waiting on retry or replay
// failed    | null: given up, or not wanted               | the same
//
// A process that dies between commit and delivery loses nothing: the row is due, or its lease expires. So an event can
// come twice, with the same id. Tests: test/webhook-deliveries.test.ts.
import { setTimeout } from 'node:timers/promises'
import { withTimeout } from '@services/common/concurrency/with-timeout'
import { runBatches } from '@services/common/housekeeping/delete-in-batches'
import { outsideTrace } from '@services/common/telemetry/spans'
import { type AttemptResult, growingWait, pauseAfter, reasonToDisable } from '@services/common/webhooks/attempt-result'
import { createReceivers } from '@services/common/webhooks/receivers'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { countWebhookAttempt, countWebhookDisabled } from '../../metrics.ts'
import { createAcceptedAttempts } from './accepted-attempts.ts'
import { type Claimed, claimDue } from './claims.store.ts'
import { bringForward, bringNext, endAttempt, lockAttempt, releaseAttempts } from './deliveries.store.ts'
import type { EventRecorder } from './record-events.ts'
import { OWN_FAULT, type SendDeps, sendEvent } from './send-event.ts'
import { failUnwanted } from './unwanted-deliveries.store.ts'
import { findWebhook, lockWebhook, NO_FAILURES, recordFailure, updateWebhook, type Webhook } from './webhooks.store.ts'

interface Deps extends SendDeps {
  db: Kysely<DB>
  events: EventRecorder
}

/** Attempts at once of one receiver in one process. All receivers together stay below the slots of the client. */
const AT_ONCE = 3

/** Limit of an attempt, answer included. */
export const ANSWER_WITHIN_MS = 15_000

/** Longer than an attempt and its statements: one that has not ended by then was lost with its process. */
const LEASE_MS = 60_000

/** 5 s, 10 s, 20 s … 12 h: about eighteen attempts in three days. */
const waitAfter = growingWait({ firstMs: 5_000, longestMs: 12 * 3_600_000 })

/**
 * Failures in a row after which a success ends an outage. One event that is refused makes fewer, between others'
 * successes.
 */
const OUTAGE = 3

/** Wait after a fault of our own, such as a missing key. */
const OWN_FAULT_MS = 60_000

const POLL_EVERY_MS = 1_000

/** Least time between two rounds: a statement costs about as much for three events as for one. */
const ROUND_EVERY_MS = 50

/** The same while events wait for each other or for slots. */
const BACKLOG_ROUND_EVERY_MS = 10

/** Time that running attempts have to end at a stop. */
const STOP_GRACE_MS = 4_000

/** Delivers until the returned function is called. */
export function startDispatcher(
  deps: Deps,
  {
    answerWithinMs = ANSWER_WITHIN_MS,
    stopGraceMs = STOP_GRACE_MS,
  }: Partial<Record<'answerWithinMs' | 'stopGraceMs', number>> = {},
): () => Promise<void> {
  const { db, events, log, now } = deps
  const slots = createReceivers()
  const attempts = new Map<Claimed, Promise<void>>()
  const accepted = createAcceptedAttempts(deps)
  let rounds: Promise<void> | undefined
  let isWoken = false
  let isStopping = false

  const wake = () => {
    if (isStopping || !events.isOn()) return
    isWoken = true
    begin()
  }
  const begin = () => {
    rounds ??= outsideTrace(runRounds)
      .catch((err) => log.warn({ err }, 'events not claimed, will retry'))
      .finally(() => {
        rounds = undefined
        if (isWoken || accepted.isWaiting()) begin()
      })
  }
  const runRounds = async () => {
    while (isWoken || accepted.isWaiting()) {
      // A statement that waits for a lock holds up no other round.
      const brought = await withTimeout(ROUND_EVERY_MS, accepted.record())
      const isBacklog = isWoken && (await claim())
      await setTimeout(isBacklog || brought ? BACKLOG_ROUND_EVERY_MS : ROUND_EVERY_MS)
    }
  }
  const claim = async (): Promise<boolean> => {
    isWoken = false
    const leaseUntil = new Date(now().getTime() + LEASE_MS)
    const due = await claimDue(db, { now: now(), leaseUntil, atOnce: AT_ONCE, busy: slots.busy })
    if (due.putOff > 0) isWoken = !isStopping
    for (const claimed of due.claimed) {
      const attempt = attemptOnce(claimed)
        .catch((err) => log.warn({ err, webhookId: claimed.webhook_id, eventId: claimed.id }, 'attempt not recorded'))
        .finally(() => attempts.delete(claimed))
      attempts.set(claimed, attempt)
    }
    return due.claimed.some(({ webhook_id, failures }) => failures > 0 || slots.busyAt(webhook_id) === AT_ONCE)
  }
  const attemptOnce = async (claimed: Claimed): Promise<void> => {
    const leave = slots.enter(claimed.webhook_id)
    const result = await sendEvent(deps, claimed, answerWithinMs)
    if (result.error !== null) {
      await recordFailed(deps, claimed, result).finally(leave)
      return wake()
    }
    leave()
    countWebhookAttempt('delivered')
    const recorded = accepted.end(claimed, result)
    wake()
    begin()
    const ended = await recorded
    if (!ended?.failures) return
    await endFailures(deps, claimed)
    wake()
  }
  const timer = setInterval(wake, POLL_EVERY_MS).unref()
  const forget = events.onEvents(wake)
  wake()
  return async () => {
    isStopping = true
    isWoken = false
    clearInterval(timer)
    forget()
    await rounds
    await withTimeout(stopGraceMs, Promise.all(attempts.values()))
    await accepted.record()
    // Another process may begin at once.
    await releaseAttempts(db, [...attempts.keys()], now())
  }
}

/** Ends the failures in a row last: if the process dies before, the next success ends the outage. */
async function endFailures({ db, now }: Deps, attempt: Claimed): Promise<void> {
  const receiver = await findWebhook(db, attempt.webhook_id)
  if (!isAsked(receiver, attempt)) return
  if (receiver.failures >= OUTAGE) await runBatches((limit) => bringForward(db, receiver.id, now(), limit))
  await db.transaction().execute(async (trx) => {
    const locked = await lockWebhook(trx, receiver.id)
    if (isAsked(locked, attempt)) await updateWebhook(trx, receiver.id, NO_FAILURES)
  })
}

async function recordFailed(deps: Deps, attempt: Claimed, result: AttemptResult): Promise<void> {
  const now = deps.now()
  if (result.error === OWN_FAULT) {
    await endAttempt(deps.db, attempt, result, { nextAt: new Date(now.getTime() + OWN_FAULT_MS) })
  } else await recordRefusal(deps, attempt, result, now)
}

/** Judges by the rows as they are now: the receiver may have been changed, and the event sent again by an admin. */
async function recordRefusal(deps: Deps, attempt: Claimed, result: AttemptResult, now: Date): Promise<void> {
  const { db, log } = deps
  const { isLast, ended, reason, isNew } = await db.transaction().execute(async (trx) => {
    const receiver = await lockWebhook(trx, attempt.webhook_id)
    const delivery = await lockAttempt(trx, attempt)
    const reason = isAsked(receiver, attempt) ? endOf(receiver, result, now) : undefined
    if (isAsked(receiver, attempt)) {
      const pauseMs = isReceiversOwn(result) ? pauseAfter(receiver.failures + 1) : 0
      const pausedUntil = pauseMs > 0 ? new Date(now.getTime() + pauseMs) : null
      await recordFailure(trx, receiver.id, { now, pausedUntil, reason })
    }
    const isNew = receiver?.disabled_reason === null
    if (!delivery) return { isLast: false, ended: undefined, reason, isNew }
    // Another address has not been asked yet.
    const waitMs = isAsked(receiver, attempt) ? waitAfter(Math.max(1, attempt.attempts - delivery.attempts_before)) : 0
    const nextAt = new Date(now.getTime() + waitMs)
    const isLast = nextAt > delivery.give_up_at || reason === 'gone'
    const ended = await endAttempt(trx, attempt, result, isLast ? { state: 'failed' } : { nextAt })
    return { isLast, ended, reason, isNew }
  })
  const facts = { webhookId: attempt.webhook_id, eventId: attempt.id, event: attempt.event, ...result }
  countWebhookAttempt(isLast ? 'failed' : 'retried')
  if (reason && isNew) {
    countWebhookDisabled(reason)
    log.error({ ...facts, reason }, 'webhook disabled: receiver answered 410 or failed for days')
  } else if (isLast) log.warn(facts, 'event given up: receiver failed for days')
  else log.info(facts, 'event not delivered, will retry')
  if (reason === 'gone') await runBatches((limit) => failUnwanted(db, now, limit))
  else if (isLast && ended) await bringNext(db, [attempt], now)
}

/** The receiver has the address that was asked: the answer of another one says nothing about it. */
const isAsked = (receiver: Webhook | undefined, { url }: Claimed): receiver is Webhook => receiver?.url === url

/** Reason to disable the receiver; one that is disabled already can only want no more events at all. */
function endOf(receiver: Webhook, result: AttemptResult, now: Date): 'gone' | 'failing' | undefined {
  const reason = reasonToDisable(receiver, result, now)
  return reason === 'failing' && !receiver.enabled ? undefined : reason
}

/** A failure of the receiver as a whole. Other refusals may be about this one event, and the next may be accepted. */
const isReceiversOwn = ({ status }: AttemptResult): boolean => status === null || status === 429 || status >= 500
