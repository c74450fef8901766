import { BATCH } from '@services/common/housekeeping/delete-in-batches'
import type { AttemptResult } from '@services/common/webhooks/attempt-result'
import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'

export type Delivery = Omit<Selectable<DB['webhook_deliveries']>, 'position'>

/** Key of a delivery. */
export type DeliveryKey = Pick<Delivery, 'webhook_id' | 'id'>

type Attempt = DeliveryKey & Pick<Delivery, 'attempts'>

/** The delivery while this attempt is its last: a lease may have expired. */
const isLastAttempt = ({ webhook_id, id, attempts }: Attempt) => sql<boolean>`
  webhook_id = ${webhook_id} and id = ${id} and attempts = ${attempts} and state = 'waiting'`

/** Locks the delivery while this attempt is its last. An admin may have sent it again meanwhile. */
export const lockAttempt = (
  trx: Transaction<DB>,
  attempt: Attempt,
): Promise<Pick<Delivery, 'attempts_before' | 'give_up_at'> | undefined> =>
  trx
    .selectFrom('webhook_deliveries')
    .select(['attempts_before', 'give_up_at'])
    .where(isLastAttempt(attempt))
    .forNoKeyUpdate()
    .executeTakeFirst()

/** Ends the attempt, unless it was lost and another one has begun. Returns the failures of the receiver in a row. */
export async function endAttempt(
  db: Kysely<DB>,
  attempt: Attempt,
  { status, error }: AttemptResult,
  next: { state: 'delivered' | 'failed' } | { nextAt: Date },
): Promise<{ failures: number | null } | undefined> {
  const [state, nextAt] = 'state' in next ? [next.state, null] : ['waiting', next.nextAt]
  const { rows } = await sql<{ failures: number | null }>`
    update ${sql.table('webhook_deliveries')} delivery
    set state = ${state}, next_at = ${nextAt}, is_running = false, last_status = ${status}, last_error = ${error}
    where ${isLastAttempt(attempt)}
    returning
      (select failures from ${sql.table('webhooks')} receiver where receiver.id = delivery.webhook_id) as failures`.execute(
    db,
  )
  return rows[0]
}

/** An attempt whose receiver accepted the event. */
export type AcceptedAttempt = Attempt & Pick<AttemptResult, 'status'>

/** A delivery that has ended. */
export interface Ended extends DeliveryKey, Pick<Delivery, 'user_id'> {
  /** Failures of the receiver in a row. */
  failures: number | null
}

/** Ends these attempts in one statement, but for lost and locked ones. Returns the deliveries that it ended. */
export async function endAccepted(db: Kysely<DB>, accepted: readonly AcceptedAttempt[]): Promise<Ended[]> {
  const column = (name: 'webhook_id' | 'id' | 'attempts') => accepted.map((attempt) => attempt[name])
  const deliveries = sql.table('webhook_deliveries')
  const { rows } = await sql<Ended>`
    with ended as materialized (
      select own.webhook_id, own.id, attempt.status
      from unnest(${column('webhook_id')}::uuid[], ${column('id')}::uuid[], ${column('attempts')}::integer[],
          ${accepted.map(({ status }) => status)}::integer[]) attempt (webhook_id, id, attempts, status)
        join ${deliveries} own on own.webhook_id = attempt.webhook_id and own.id = attempt.id
      where own.attempts = attempt.attempts and own.state = 'waiting'
      for no key update of own skip locked
    )
    update ${deliveries} delivery
    set state = 'delivered', next_at = null, is_running = false, last_status = ended.status, last_error = null
    from ended where delivery.webhook_id = ended.webhook_id and delivery.id = ended.id
    returning delivery.webhook_id, delivery.id, delivery.user_id,
      (select failures from ${sql.table('webhooks')} receiver where receiver.id = delivery.webhook_id) as failures`.execute(
    db,
  )
  return rows
}

/**
 * Makes the first deliveries of these users due, which were put off behind ended ones; returns their number. It is a
 * statement of its own: the one of the end sees no delivery that came and was put off after its snapshot. The lock
 * order is that of an erasure.
 */
export async function bringNext(
  db: Kysely<DB>,
  ended: readonly Pick<Delivery, 'webhook_id' | 'user_id'>[],
  now: Date,
): Promise<number> {
  const deliveries = sql.table('webhook_deliveries')
  const column = (name: 'webhook_id' | 'user_id') => ended.map((delivery) => delivery[name])
  const { numAffectedRows } = await sql`
    with next as materialized (
      select own.webhook_id, own.id
      from unnest(${column('webhook_id')}::uuid[], ${column('user_id')}::uuid[]) ended (webhook_id, user_id)
        join ${deliveries} own on own.webhook_id = ended.webhook_id and own.id = (
          select first.id from ${deliveries} first
          where first.webhook_id = ended.webhook_id and first.user_id = ended.user_id and first.state = 'waiting'
          order by first.position limit 1)
      where own.state = 'waiting' and own.next_at > ${now} and not own.is_running
      order by own.webhook_id, own.id for no key update of own
    )
    update ${deliveries} delivery set next_at = ${now}
    from next where delivery.webhook_id = next.webhook_id and delivery.id = next.id`.execute(db)
  return Number(numAffectedRows ?? 0)
}

/** Undoes the beginning of attempts that were not made. */
export async function releaseAttempts(db: Kysely<DB>, attempts: readonly Attempt[], nextAt: Date): Promise<void> {
  for (const attempt of attempts) {
    await db
      .updateTable('webhook_deliveries')
      .set({ next_at: nextAt, is_running: false, attempts: attempt.attempts - 1 })
      .where(isLastAttempt(attempt))
      .execute()
  }
}

/**
 * Makes some deliveries due that failed before, as their receiver works again; returns their number. A running attempt
 * keeps its lease. Locked ones are skipped: a receiver's row may be locked meanwhile, and its attempts wait for that.
 */
export async function bringForward(db: Kysely<DB>, webhookId: string, now: Date, limit = BATCH): Promise<number> {
  const deliveries = sql.table('webhook_deliveries')
  const { numAffectedRows } = await sql`
    update ${deliveries} set next_at = ${now} where ctid = any (array(
      select ctid from ${deliveries}
      where webhook_id = ${webhookId} and state = 'waiting' and last_error is not null and next_at > ${now}
        and not is_running
      limit ${limit} for update skip locked))`.execute(db)
  return Number(numAffectedRows ?? 0)
}

/** Makes the delivery wait again, due now, whatever its state. Undefined when there is none. */
export const restartDelivery = (
  trx: Transaction<DB>,
  { webhook_id, id }: DeliveryKey,
  { now, giveUpAt }: { now: Date; giveUpAt: Date },
): Promise<Delivery | undefined> =>
  trx
    .updateTable('webhook_deliveries')
    .set({
      ...{ state: 'waiting', give_up_at: giveUpAt, attempts_before: sql`attempts` },
      next_at: sql<Date>`case when is_running then next_at else ${now} end`,
    })
    .where('webhook_id', '=', webhook_id)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()

/** Last delivery of a batch, in the order of events. */
interface Place {
  created_at: string
  position: string
}

interface Restart {
  since: Date
  /** A receiver; all without it. */
  webhookId: string | undefined
  now: Date
  giveUpAt: Date
  after: Place | undefined
  limit: number
}

/**
 * Makes ended deliveries since a moment wait again, the oldest first; they keep their order. Returns their number, and
 * the last one if there may be more. The lock order is that of an erasure.
 */
export async function restartSince(
  trx: Transaction<DB>,
  { since, webhookId, now, giveUpAt, after, limit }: Restart,
): Promise<{ events: number; last: Place | undefined }> {
  const deliveries = sql.table('webhook_deliveries')
  const { rows } = await sql<{ found: number; restarted: number } & Place>`
    with batch as materialized (
      select webhook_id, id, created_at, position from ${deliveries}
      where created_at >= ${since} and state <> 'waiting'
        and webhook_id in (select id from ${sql.table('webhooks')})
        ${webhookId ? sql`and webhook_id = ${webhookId}` : sql``}
        ${after ? sql`and (created_at, position) > (${after.created_at}, ${after.position})` : sql``}
      order by created_at, position limit ${limit}
    ), locked as materialized (
      select own.webhook_id, own.id
      from ${deliveries} own join batch on batch.webhook_id = own.webhook_id and batch.id = own.id
      where own.state <> 'waiting'
      order by own.webhook_id, own.id for update of own
    ), restarted as (
      update ${deliveries} delivery
      set state = 'waiting', next_at = ${now}, give_up_at = ${giveUpAt}, attempts_before = delivery.attempts
      from locked where delivery.webhook_id = locked.webhook_id and delivery.id = locked.id
      returning delivery.id
    )
    select created_at::text, position::text, (select count(*)::integer from batch) as found,
      (select count(*)::integer from restarted) as restarted
    from batch order by batch.created_at desc, batch.position desc limit 1`.execute(trx)
  const [last] = rows
  return { events: last?.restarted ?? 0, last: last && last.found === limit ? last : undefined }
}

/** Columns that the log of a receiver shows: the data of a thousand events may be megabytes. */
const SHOWN = [
  'id',
  'user_id',
  'event',
  'state',
  'attempts',
  'last_status',
  'last_error',
  'next_at',
  'created_at',
] as const

export type ShownDelivery = Pick<Delivery, (typeof SHOWN)[number]>

/** Newest first; ids of events are in the order of time. */
export async function listDeliveries(
  db: Kysely<DB>,
  webhookId: string,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<ShownDelivery[]> {
  let query = db.selectFrom('webhook_deliveries').select(SHOWN).where('webhook_id', '=', webhookId)
  if (after) query = query.where('id', '<', after)
  return query.orderBy('id', 'desc').limit(limit).execute()
}

/** Finds the time of the newest such event of the user, for any receiver. Undefined if there is none since. */
export async function findEventTime(
  db: Kysely<DB>,
  userId: string,
  event: string,
  since: Date,
): Promise<Date | undefined> {
  const found = await db
    .selectFrom('webhook_deliveries')
    .select('created_at')
    .where('user_id', '=', userId)
    .where(sql<boolean>`not is_erased`)
    .where('event', '=', event)
    .where('created_at', '>', since)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return found?.created_at
}
