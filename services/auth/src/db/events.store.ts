// Rows of events on their way: one for each receiver that wants the event, written by the statement of the change or in
// its transaction. Delivery: core/webhooks.
import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { DB } from './tables.ts'

/** Time after which a delivery is given up. */
export const TRY_FOR_MS = 3 * 86_400_000

/** An event; `data` is JSON. */
export interface EventRow {
  id: string
  userId: string | null
  event: string
  data: string
}

interface Source {
  /** Rows that have the members. */
  from: RawBuilder<unknown>
  id: RawBuilder<unknown>
  userId: RawBuilder<unknown>
  event: RawBuilder<unknown>
  data: RawBuilder<unknown>
  now: Date
  giveUpAt: Date
}

/** Matches receivers that want an event. A receiver that answered 410 wants none. */
export const wants = (event: RawBuilder<unknown>, receiver = 'receiver') => sql<boolean>`
  ${sql.ref(`${receiver}.events`)} && array['*', split_part(${event}, '.', 1) || '.*', ${event}]
    and ${sql.ref(`${receiver}.disabled_reason`)} is distinct from 'gone'`

/** Part of a statement: inserts events for all receivers that want them. */
export const insertEvents = ({ from, id, userId, event, data, now, giveUpAt }: Source) => sql`
  insert into ${sql.table('webhook_deliveries')}
    (webhook_id, id, user_id, event, data, state, next_at, give_up_at, created_at)
  select receiver.id, ${id}, ${userId}, ${event}, ${data}, 'waiting', ${now}::timestamptz, ${giveUpAt}::timestamptz,
    ${now}::timestamptz
  from ${from}, ${sql.table('webhooks')} receiver
  where ${wants(event)}`

/** Inserts events in this order. */
export async function storeEvents(db: Kysely<DB>, events: readonly EventRow[], now: Date): Promise<void> {
  if (events.length === 0) return
  const rows = events.map(({ userId, ...event }, place) => ({ ...event, user_id: userId, place }))
  const from = sql`jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
    as given (id uuid, user_id uuid, event text, data text, place integer)`
  const given = (name: string) => sql.ref(`given.${name}`)
  const row = { id: given('id'), userId: given('user_id'), event: given('event'), data: sql`${given('data')}::jsonb` }
  const insertion = insertEvents({ ...row, from, now, giveUpAt: giveUpAt(now) })
  // The position, which orders the events of a user, is that of the insertion.
  await sql`${insertion} order by ${given('place')}`.execute(db)
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
