import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import type { AttemptResult } from '@services/common/webhooks/attempt-result'
import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'

export type Delivery = Omit<Selectable<DB['webhook_deliveries']>, 'position'>

/** Key of a delivery. */
export type DeliveryKey = Pick<Delivery, 'webhook_id' | 'id'>

/** A delivery whose attempt has begun, with its receiver. */
export type Claimed = Pick<
  Delivery,
  'webhook_id' | 'id' | 'user_id' | 'event' | 'data' | 'attempts' | 'attempts_before' | 'give_up_at' | 'created_at'
> &
  Pick<Selectable<DB['webhooks']>, 'url' | 'sealed_secrets' | 'failures' | 'failing_since'>

interface Claim {
  now: Date
  /** An attempt that has not ended by then was lost with its process. */
  leaseUntil: Date
  /** Slots of a receiver. */
  atOnce: number
  /** Attempts under way in this process, by receiver. */
  busy: ReadonlyMap<string, number>
}

/**
 * Begins attempts: the deliveries of each receiver that are due longest that has free slots, and of a user only the
 * first that waits. A receiver that failed gets one at a time. Parallel callers get different ones.
 */
export async function claimDue(db: Kysely<DB>, { now, leaseUntil, atOnce, busy }: Claim): Promise<Claimed[]> {
  const [receivers, deliveries] = [sql.table('webhooks'), sql.table('webhook_deliveries')]
  const { rows } = await sql<Claimed>`
    with busy as (
      select * from unnest(${[...busy.keys()]}::uuid[], ${[...busy.values()]}::integer[]) busy (webhook_id, attempts)
    ), due as materialized (
      select next.webhook_id, next.id
      from ${receivers} receiver left join busy on busy.webhook_id = receiver.id,
        lateral (
          select webhook_id, id from ${deliveries} waiting
          where waiting.webhook_id = receiver.id and waiting.state = 'waiting' and waiting.next_at <= ${now}
            and (waiting.user_id is null or waiting.position = (
              select first.position from ${deliveries} first
              where first.webhook_id = waiting.webhook_id and first.user_id = waiting.user_id
                and first.state = 'waiting'
              order by first.position limit 1))
          order by waiting.next_at, waiting.position
          limit greatest(0, case when receiver.failures > 0 then 1 else ${atOnce} end - coalesce(busy.attempts, 0))
          for update of waiting skip locked
        ) next
      where receiver.enabled and (receiver.paused_until is null or receiver.paused_until <= ${now})
    )
    update ${deliveries} delivery set attempts = delivery.attempts + 1, next_at = ${leaseUntil},
      is_running = true
    from due, ${receivers} receiver
    where delivery.webhook_id = due.webhook_id and delivery.id = due.id and receiver.id = delivery.webhook_id
    returning delivery.webhook_id, delivery.id, delivery.user_id, delivery.event, delivery.attempts,
      case when delivery.event_user_id is null then delivery.data
        else delivery.data || jsonb_build_object('user', (
          select shown.data from ${sql.table('event_users')} shown where shown.id = delivery.event_user_id)) end as data,
      delivery.attempts_before, delivery.give_up_at, delivery.created_at,
      receiver.url, receiver.sealed_secrets, receiver.failures, receiver.failing_since`.execute(db)
  return rows
}

/** The delivery while this attempt is its last: a lease may have expired, and an admin may have sent it again. */
const ownAttempt = (db: Kysely<DB>, { webhook_id, id, attempts }: DeliveryKey & Pick<Delivery, 'attempts'>) =>
  db
    .updateTable('webhook_deliveries')
    .where('webhook_id', '=', webhook_id)
    .where('id', '=', id)
    .where('attempts', '=', attempts)
    .where('state', '=', 'waiting')

export async function endAttempt(
  db: Kysely<DB>,
  attempt: Claimed,
  { status, error }: AttemptResult,
  next: { state: 'delivered' | 'failed' } | { nextAt: Date },
): Promise<void> {
  const state = 'state' in next ? { state: next.state, next_at: null } : { next_at: next.nextAt }
  await ownAttempt(db, attempt)
    .set({ ...state, is_running: false, last_status: status, last_error: error })
    .execute()
}

/** Undoes the beginning of attempts that were not made. */
export async function releaseAttempts(db: Kysely<DB>, attempts: readonly Claimed[], nextAt: Date): Promise<void> {
  for (const attempt of attempts) {
    await ownAttempt(db, attempt)
      .set({ next_at: nextAt, is_running: false, attempts: attempt.attempts - 1 })
      .execute()
  }
}

/** Makes deliveries due that failed before: their receiver works again. A running attempt keeps its lease. */
export async function bringForward(trx: Transaction<DB>, webhookId: string, now: Date): Promise<void> {
  await trx
    .updateTable('webhook_deliveries')
    .set({ next_at: now })
    .where('webhook_id', '=', webhookId)
    .where(sql<boolean>`state = 'waiting'`)
    .where('last_error', 'is not', null)
    .where('next_at', '>', now)
    .where('is_running', '=', false)
    .execute()
}

/** Fails what waits for a receiver that wants no more events. */
export async function failWaiting(trx: Transaction<DB>, webhookId: string, error: string): Promise<void> {
  await trx
    .updateTable('webhook_deliveries')
    .set({ state: 'failed', next_at: null, is_running: false, last_error: error })
    .where('webhook_id', '=', webhookId)
    .where(sql<boolean>`state = 'waiting'`)
    .execute()
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

/** Makes all ended deliveries since a moment wait again; they keep their order. Returns their number. */
export async function restartSince(
  trx: Transaction<DB>,
  { since, webhookId, now, giveUpAt }: { since: Date; webhookId: string | undefined; now: Date; giveUpAt: Date },
): Promise<number> {
  let query = trx
    .updateTable('webhook_deliveries')
    .set({ state: 'waiting', next_at: now, give_up_at: giveUpAt, attempts_before: sql`attempts` })
    .where('created_at', '>=', since)
    .where('state', '!=', 'waiting')
  if (webhookId) query = query.where('webhook_id', '=', webhookId)
  const { numUpdatedRows } = await query.executeTakeFirstOrThrow()
  return Number(numUpdatedRows)
}

/** Newest first; ids of events are in the order of time. */
export async function listDeliveries(
  db: Kysely<DB>,
  webhookId: string,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<Delivery[]> {
  let query = db.selectFrom('webhook_deliveries').selectAll().where('webhook_id', '=', webhookId)
  if (after) query = query.where('id', '<', after)
  return query.orderBy('id', 'desc').limit(limit).execute()
}

/** Removes personal data from the events of deleted users, also from those on their way: ids and kinds stay. */
export async function eraseEvents(db: Kysely<DB>, userIds: readonly string[]): Promise<void> {
  const kept = Object.entries({
    session: ['id'],
    identity: ['identity_id', 'provider'],
    factor: ['id', 'factor_type'],
    passkey: ['id'],
    message: ['id', 'channel', 'kind'],
  }).map(([name, members]) => {
    const pairs = members.map((member) => sql`${member}::text, data -> ${name}::text -> ${member}::text`)
    return sql`${name}::text, case when data ? ${name}::text then jsonb_build_object(${sql.join(pairs)}) end`
  })
  await sql`
    with shown as (delete from ${sql.table('event_users')} where user_id = any (${userIds}::uuid[]))
    update ${sql.table('webhook_deliveries')} set event_user_id = null, data = jsonb_strip_nulls(jsonb_build_object(
      'user', jsonb_build_object('id', user_id), 'reason', data -> 'reason', ${sql.join(kept)}))
    where user_id = any (${userIds}::uuid[])`.execute(db)
}

/** Housekeeping: fails deliveries that no attempt is made at, because their receiver is disabled. */
export async function failExpired(db: Kysely<DB>, now: Date, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    update ${sql.table('webhook_deliveries')} set state = 'failed', next_at = null,
      is_running = false, last_error = coalesce(last_error, 'given_up')
    where (webhook_id, id) in (
      select webhook_id, id from ${sql.table('webhook_deliveries')}
      where state = 'waiting' and give_up_at < ${now} and next_at < ${now} limit ${limit} for update skip locked)`.execute(
    db,
  )
  return Number(numAffectedRows ?? 0)
}

/** Housekeeping: ended deliveries, and those of deleted receivers. */
export const deleteOldDeliveries = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'webhook_deliveries', { column: 'created_at', before, condition: sql`state <> 'waiting'` })

export const deleteOrphans = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'webhook_deliveries', {
    column: 'created_at',
    before,
    condition: sql`not exists (select from ${sql.table('webhooks')} receiver where receiver.id = webhook_id)`,
  })

/** Housekeeping: users of deleted events. */
export const deleteOldEventUsers = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'event_users', {
    column: 'created_at',
    before,
    condition: sql`not exists (
      select from ${sql.table('webhook_deliveries')} event
      where event.created_at = ${sql.ref('event_users.created_at')} and event.event_user_id = ${sql.ref('event_users.id')})`,
  })

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
    .where('event', '=', event)
    .where('created_at', '>', since)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return found?.created_at
}
