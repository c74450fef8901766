// Rows of events on their way: one for each receiver that wants the event, written by the statement of the change or in
// its transaction. Delivery: core/webhooks.
import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { DB } from './tables.ts'
import type { SessionEnd } from './watched-users.ts'

/** Time after which a delivery is given up. */
export const TRY_FOR_MS = 3 * 86_400_000

/** An event; `data` is JSON. */
export interface EventRow {
  id: string
  userId: string | null
  event: string
  data: string
}

/** An event whose user is stored beside it, unless `data` has one. */
export interface EventOfUser extends EventRow {
  eventUserId: string | null
}

/** A user as the events of a transaction show it. */
export interface EventUser {
  id: string
  userId: string
  data: object
  /** Names of its events in the transaction. */
  events: Set<string>
}

/** Ended sessions of a user, as a JSON array. */
export interface EndedSessions {
  userId: string
  /** null for a deleted user, whose events have ids alone. */
  eventUserId: string | null
  reason: SessionEnd
  sessions: string
  count: number
}

interface Source {
  /** Rows that have the members. */
  from: RawBuilder<unknown>
  id: RawBuilder<unknown>
  userId: RawBuilder<unknown>
  event: RawBuilder<unknown>
  data: RawBuilder<unknown>
  eventUserId?: RawBuilder<unknown>
  now: Date
  giveUpAt: Date
}

/** Matches receivers that want an event. A receiver that answered 410 wants none. */
const wants = (event: RawBuilder<unknown>) => sql<boolean>`
  ${sql.ref('receiver.events')} && array['*', split_part(${event}, '.', 1) || '.*', ${event}]
    and ${sql.ref('receiver.disabled_reason')} is distinct from 'gone'`

/** Part of a statement: inserts events for all receivers that want them. */
export const insertEvents = ({ from, id, userId, event, data, eventUserId, now, giveUpAt }: Source) => sql`
  insert into ${sql.table('webhook_deliveries')}
    (webhook_id, id, user_id, event, data, event_user_id, state, next_at, give_up_at, created_at)
  select receiver.id, ${id}, ${userId}, ${event}, ${data}, ${eventUserId ?? sql`null::uuid`}, 'waiting',
    ${now}::timestamptz, ${giveUpAt}::timestamptz, ${now}::timestamptz
  from ${from}, ${sql.table('webhooks')} receiver
  where ${wants(event)}`

/** Inserts events in this order, and the users that they show, unless no receiver wants any event of them any more. */
export async function storeEvents(
  db: Kysely<DB>,
  events: readonly EventOfUser[],
  users: readonly EventUser[],
  now: Date,
): Promise<void> {
  if (events.length === 0 && users.length === 0) return
  const rows = events.map(({ userId, eventUserId, ...event }, place) => ({
    ...{ ...event, user_id: userId, event_user_id: eventUserId, place },
  }))
  const from = sql`jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
    as given (id uuid, user_id uuid, event text, data text, event_user_id uuid, place integer)`
  const given = (name: string) => sql.ref(`given.${name}`)
  const row = { id: given('id'), userId: given('user_id'), event: given('event'), data: sql`${given('data')}::jsonb` }
  const shown = { eventUserId: given('event_user_id') }
  const insertion = insertEvents({ ...row, ...shown, from, now, giveUpAt: giveUpAt(now) })
  // The position, which orders the events of a user, is that of the insertion.
  await sql`${insertUsers(users, now)} ${insertion} order by ${given('place')}`.execute(db)
}

const insertUsers = (users: readonly EventUser[], now: Date) => {
  if (users.length === 0) return sql``
  const rows = users.map(({ id, userId, data, events }) => ({ id, user_id: userId, data, events: [...events] }))
  return sql`with shown as (
    insert into ${sql.table('event_users')} (id, user_id, data, created_at)
    select id, user_id, data, ${now}::timestamptz
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as given (id uuid, user_id uuid, data jsonb, events text[])
    where exists (
      select from unnest(given.events) event (name), ${sql.table('webhooks')} receiver where ${wants(sql`event.name`)})
  )`
}

/** Inserts `session.ended` for each session, in this order. `ids` are as many as all sessions. */
export async function storeEnds(
  db: Kysely<DB>,
  parts: readonly EndedSessions[],
  ids: readonly string[],
  now: Date,
): Promise<void> {
  const column = (name: keyof EndedSessions) => parts.map((part) => part[name])
  const from = sql`(
    select part.user_id, part.event_user_id, part.reason, listed.session,
      row_number() over (order by part.place, listed.place) as place
    from unnest(${column('userId')}::uuid[], ${column('eventUserId')}::uuid[], ${column('reason')}::text[],
        ${column('sessions')}::jsonb[]) with ordinality part (user_id, event_user_id, reason, sessions, place),
      jsonb_array_elements(part.sessions) with ordinality listed (session, place)
  ) ended join unnest(${ids}::uuid[]) with ordinality event (id, place) on event.place = ended.place`
  const session = sql`case when ended.reason = 'user_deleted'
    then jsonb_build_object('id', ended.session -> 'id') else ended.session end`
  const user = sql`case when ended.event_user_id is null
    then jsonb_build_object('user', jsonb_build_object('id', ended.user_id)) else '{}' end`
  const insertion = insertEvents({
    ...{ from, id: sql`event.id`, userId: sql`ended.user_id`, eventUserId: sql`ended.event_user_id` },
    event: sql`'session.ended'::text`,
    data: sql`${user} || jsonb_build_object('session', ${session}, 'reason', ended.reason)`,
    ...{ now, giveUpAt: giveUpAt(now) },
  })
  await sql`${insertion} order by ended.place`.execute(db)
}

export const giveUpAt = (now: Date): Date => new Date(now.getTime() + TRY_FOR_MS)

/** Inserts an event for one receiver, whatever it wants. */
export const storeTest = (db: Kysely<DB>, webhookId: string, { id, event, data }: EventRow, now: Date) =>
  db
    .insertInto('webhook_deliveries')
    .values({
      webhook_id: webhookId,
      id,
      event,
      data,
      user_id: null,
      next_at: now,
      give_up_at: giveUpAt(now),
      created_at: now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
