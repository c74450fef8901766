// Counts by hour and process, and by day. Numbers of the queue are the largest of their time, all others are sums.
import { jsonb } from '@services/common/database/pool'
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, sql } from 'kysely'
import type { CountedEvent, DB } from '../../db/tables.ts'

export interface HourlyCount {
  hour: Date
  event: CountedEvent
  /** Way of signing up or in, channel of messages, or id of a client. */
  method: string
  /** `ok`, error code, end of a message, or grant type of a client. */
  result: string
  count: number
}

/** Count of an hour or a day, which begins at `from`. */
export interface ListedCount extends Omit<HourlyCount, 'hour'> {
  unit: 'hour' | 'day'
  from: Date
}

const [HOURLY, DAILY] = [sql.table('hourly_counts'), sql.table('daily_counts')]

const DAY = sql`(hour at time zone 'UTC')::date`
const TOGETHER = sql`case event when 'queue' then max(count) else sum(count) end`

/** Writes what a process has counted; an older number than the stored one changes nothing. */
export async function writeCounts(db: Kysely<DB>, process: string, counts: readonly HourlyCount[]): Promise<void> {
  await sql`
    insert into ${HOURLY} as stored (hour, event, method, result, process, count)
    select hour, event, method, result, ${process}::uuid, count
    from jsonb_to_recordset(${jsonb(counts)})
      as counted (hour timestamptz, event text, method text, result text, count bigint)
    order by hour, event, method, result
    on conflict (hour, event, method, result, process)
      do update set count = greatest(stored.count, excluded.count)`.execute(db)
}

/** Adds hours before this time to their days and deletes them, in one statement; returns the number of rows. */
export async function foldHours(db: Kysely<DB>, before: Date, limit: number): Promise<number> {
  const { rows } = await sql<{ folded: number }>`
    with gone as (
      delete from ${HOURLY} where ctid = any (array(
        select ctid from ${HOURLY} where hour < ${before} order by hour limit ${limit} for update skip locked))
      returning hour, event, method, result, count
    ), folded as (
      insert into ${DAILY} as stored (day, event, method, result, count)
      select ${DAY}, event, method, result, ${TOGETHER} from gone group by 1, 2, 3, 4 order by 1, 2, 3, 4
      on conflict (day, event, method, result) do update set count = case stored.event
        when 'queue' then greatest(stored.count, excluded.count) else stored.count + excluded.count end
    )
    select count(*)::integer as folded from gone`.execute(db)
  return rows[0]?.folded ?? 0
}

/** Deletes days before the one of this time. */
export const deleteOldDays = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'daily_counts', { column: 'day', before: before.toISOString().slice(0, 10) })

/** Events of the whole service. Clients are counted apart: there may be thousands. */
const OF_ALL: readonly CountedEvent[] = ['sign_up', 'sign_in', 'message', 'queue']

/** Counts of hours and days from these times until now, of all processes together, without those of clients. */
export async function listCounts(db: Kysely<DB>, from: { hour: Date; day: Date; now: Date }): Promise<ListedCount[]> {
  const days = daysOf(from.day, from.now)
  const events = sql`event = any(${OF_ALL}::text[])`
  const { rows } = await sql<ListedCount>`
    select 'hour' as unit, hour as "from", event, method, result, ${TOGETHER}::float8 as count
    from ${HOURLY} where hour >= ${from.hour} and ${events} group by hour, event, method, result
    union all
    select 'day', day::timestamp at time zone 'UTC', event, method, result, ${TOGETHER}::float8
    from (
      select day, event, method, result, count from ${DAILY} where day = any(${days}) and ${events}
      union all
      select ${DAY}, event, method, result, count from ${HOURLY} where hour >= ${from.day} and ${events}
    ) of_days group by day, event, method, result`.execute(db)
  return rows
}

/** Grants of a client by day, from this one until now, of all processes together. */
export async function listClientCounts(
  db: Kysely<DB>,
  clientId: string,
  from: { day: Date; now: Date },
): Promise<{ from: Date; grant: string; count: number }[]> {
  const days = daysOf(from.day, from.now)
  const ofClient = sql`event = 'client' and method = ${clientId}`
  const { rows } = await sql<{ from: Date; grant: string; count: number }>`
    select day::timestamp at time zone 'UTC' as "from", result as "grant", sum(count)::float8 as count
    from (
      select day, result, count from ${DAILY} where day = any(${days}) and ${ofClient}
      union all
      select ${DAY}, result, count from ${HOURLY} where hour >= ${from.day} and ${ofClient}
    ) of_days group by day, result`.execute(db)
  return rows
}

/** Names each day, so that an index by day and event finds the wanted events alone. */
function daysOf(first: Date, now: Date) {
  const [from, to] = [first, now].map((time) => sql`${time.toISOString().slice(0, 10)}::date`)
  return sql`array(select generate_series(${from}, ${to}, interval '1 day')::date)`
}
