import { type Kysely, type Selectable, sql } from 'kysely'
import { erasedData, isDeletedUser } from '../../db/erased-events.store.ts'
import type { DB } from '../../db/tables.ts'
import type { Delivery } from './deliveries.store.ts'

/** A delivery whose attempt has begun, with its receiver. */
export type Claimed = Pick<Delivery, 'webhook_id' | 'id' | 'user_id' | 'event' | 'data' | 'attempts' | 'created_at'> &
  Pick<Selectable<DB['webhooks']>, 'url' | 'sealed_secrets' | 'failures'>

interface Claim {
  now: Date
  /** An attempt that has not ended by then was lost with its process. */
  leaseUntil: Date
  /** Slots of a receiver. */
  atOnce: number
  /** Attempts under way in this process, by receiver. */
  busy: ReadonlyMap<string, number>
}

/** Due deliveries of a receiver that one claim reads, so that no backlog makes it long. */
export const READ_AT_ONCE = 100

/** Bounds both the work of a long backlog of one user and the delay of an event whose turn was lost with a process. */
const LONGEST_PUT_OFF = '10 minutes'

/**
 * Begins attempts: for each receiver with free slots, the deliveries that are due longest. Of a user only the first
 * that waits is claimed, and a receiver that failed gets one at a time. Parallel callers get different ones.
 *
 * Deliveries that wait behind the first of their user are put off, as otherwise each claim would pass them again. The
 * end of the first brings the next one forward. If that is lost, they are due again after its lease or wait, or after
 * about as long as they have waited. `putOff` counts them: the deliveries behind them have not been read.
 *
 * An event of a deleted user is without personal data here, although its row may still have some.
 *
 * Rows are locked and changed by their place in the table: the planner knows no number of rows here. A join might read
 * all deliveries, also the delivered ones.
 */
export async function claimDue(
  db: Kysely<DB>,
  { now, leaseUntil, atOnce, busy }: Claim,
): Promise<{ claimed: Claimed[]; putOff: number }> {
  const [receivers, deliveries] = [sql.table('webhooks'), sql.table('webhook_deliveries')]
  const users = sql.table('event_users')
  const lockDue = (front: string) => sql`lateral (
    select own.ctid as tid from ${deliveries} own
    where own.ctid = ${sql.ref(front)}.tid and own.state = 'waiting' and own.next_at <= ${now}
    limit 1 for update of own skip locked)`
  const firstOf = (column: string, delivery: string) => sql`
    select earlier.${sql.ref(column)} from ${deliveries} earlier
    where earlier.webhook_id = ${sql.ref(delivery)}.webhook_id and earlier.user_id = ${sql.ref(delivery)}.user_id
      and earlier.state = 'waiting'
    order by earlier.position limit 1`
  const { rows } = await sql<Claimed & { put_off: number }>`
    with busy as (
      select * from unnest(${[...busy.keys()]}::uuid[], ${[...busy.values()]}::integer[]) busy (webhook_id, attempts)
    ), ready as materialized (
      select webhook.id,
        greatest(0, case when webhook.failures > 0 then 1 else ${atOnce} end - coalesce(busy.attempts, 0)) as slots
      from ${receivers} webhook left join busy on busy.webhook_id = webhook.id
      where webhook.enabled and webhook.unset_at is null and (webhook.paused_until is null or webhook.paused_until <= ${now})
    ), front as materialized (
      select due.*, coalesce((${firstOf('ctid', 'due')}), due.tid) as first_tid
      from ready, lateral (
        select waiting.ctid as tid, waiting.webhook_id, waiting.user_id, waiting.next_at, waiting.position
        from ${deliveries} waiting
        where waiting.webhook_id = ready.id and waiting.state = 'waiting' and waiting.next_at <= ${now}
        order by waiting.next_at, waiting.position
        limit case when ready.slots > 0 then ${READ_AT_ONCE} else 0 end) due
    ), chosen as materialized (
      select next.tid from ready, lateral (
        select locked.tid from (
          select * from front where front.webhook_id = ready.id and front.tid = front.first_tid
          order by front.next_at, front.position) heads, ${lockDue('heads')} locked
        limit ready.slots) next
    ), claimed as (
      update ${deliveries} delivery set attempts = delivery.attempts + 1, next_at = ${leaseUntil}, is_running = true
      where delivery.ctid = any (array(select tid from chosen))
      returning delivery.webhook_id, delivery.id, delivery.user_id, delivery.event, delivery.attempts,
        case when delivery.user_id is not null and ${isDeletedUser('delivery.user_id')} then ${erasedData('delivery')}
          when delivery.event_user_id is null then delivery.data
          else delivery.data || jsonb_build_object('user', (select shown.data from ${users} shown
            where shown.id = delivery.event_user_id)) end as data,
        delivery.created_at
    ), held as materialized (
      select first.tid
      from (select distinct first_tid from front where tid <> first_tid) blocking, lateral (
        select own.ctid as tid from ${deliveries} own
        where own.ctid = blocking.first_tid and own.state = 'waiting'
        limit 1 for no key update of own skip locked) first
    ), blocked as materialized (
      select locked.tid from front join held on held.tid = front.first_tid, ${lockDue('front')} locked
      where front.tid <> front.first_tid
    ), put_off as (
      update ${deliveries} delivery set next_at = greatest(${leaseUntil}, (${firstOf('next_at', 'delivery')}),
        ${now}::timestamptz + least(${now}::timestamptz - delivery.created_at, ${LONGEST_PUT_OFF}::interval))
      where delivery.ctid = any (array(select tid from blocked))
      returning delivery.id
    )
    select claimed.*, receiver.url, receiver.sealed_secrets, receiver.failures, number.put_off
    from (select count(*)::integer as put_off from put_off) number
      left join (claimed join ${receivers} receiver on receiver.id = claimed.webhook_id) on true`.execute(db)
  // One row without a claim has the number alone.
  return { claimed: rows.filter(({ id }) => id !== null), putOff: rows[0]?.put_off ?? 0 }
}
