// Erasure: events of a deleted user lose their personal data; ids and kinds stay. A deletion erases up to `BATCH` rows,
// whether or not this process knows of a receiver, and housekeeping the rest each hour. An event that is sent before
// that is reduced as it is read (core/webhooks/claims.store.ts), because its user is gone.
import { distinctValues } from '@services/common/database/distinct-values'
import { BATCH, repeatBatch } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { DB } from './tables.ts'

const KEPT = Object.entries({
  session: ['id'],
  identity: ['identity_id', 'provider'],
  factor: ['id', 'factor_type'],
  passkey: ['id'],
  message: ['id', 'channel', 'kind'],
})

const idsOf = (data: RawBuilder<unknown>) =>
  KEPT.map(([name, members]) => {
    const pairs = members.map((member) => sql`${member}::text, ${data} -> ${name}::text -> ${member}::text`)
    return sql`${name}::text, case when ${data} ? ${name}::text then jsonb_build_object(${sql.join(pairs)}) end`
  })

/** Data of an event without personal data. */
export function erasedData(delivery: string): RawBuilder<object> {
  const data = sql.ref(`${delivery}.data`)
  return sql`jsonb_strip_nulls(jsonb_build_object('user', jsonb_build_object('id', ${sql.ref(`${delivery}.user_id`)}),
    'reason', ${data} -> 'reason', 'soft', ${data} -> 'soft', ${sql.join(idsOf(data))}))`
}

/** Whether the user exists no more, or is anonymised. The offset keeps the planner from reading all users. */
export const isDeletedUser = (userId: string) => sql<boolean>`not exists (
  select from ${sql.table('users')} owner where owner.id = ${sql.ref(userId)} and owner.deleted_at is null offset 0)`

/**
 * Erases up to `BATCH` events of these users and as many users that events show; returns the larger number. Deliveries
 * are locked in the order of their keys, as by all that wait for locks of several.
 */
export async function eraseEvents(db: Kysely<DB>, userIds: readonly string[]): Promise<number> {
  const [deliveries, users] = [sql.table('webhook_deliveries'), sql.table('event_users')]
  const { rows } = await sql<{ erased: number }>`
    with found as materialized (
      select webhook_id, id from ${deliveries} where user_id = any (${userIds}::uuid[]) and not is_erased limit ${BATCH}
    ), own as materialized (
      select own.webhook_id, own.id
      from ${deliveries} own join found on found.webhook_id = own.webhook_id and found.id = own.id
      order by own.webhook_id, own.id for update of own
    ), erased as (
      update ${deliveries} delivery set is_erased = true, event_user_id = null, data = ${erasedData('delivery')}
      from own where delivery.webhook_id = own.webhook_id and delivery.id = own.id
      returning delivery.id
    ), shown as (
      delete from ${users} where id = any (array(
        select id from ${users} where user_id = any (${userIds}::uuid[]) limit ${BATCH} for update skip locked))
      returning id
    )
    select greatest((select count(*) from erased), (select count(*) from shown))::integer as erased`.execute(db)
  return rows[0]?.erased ?? 0
}

/** Precedes all ids. */
const NIL = '00000000-0000-0000-0000-000000000000'

/** Housekeeping: erases what is left of deleted users, however they were deleted. */
export async function* eraseEventsOfDeleted(db: Kysely<DB>): AsyncGenerator<void, void> {
  for (const table of ['webhook_deliveries', 'event_users'] as const) {
    for (let after = NIL; ; ) {
      const users = await nextUsers(db, table, after)
      const deleted = users.flatMap(({ user_id: id, is_deleted: isDeleted }) => (isDeleted ? [id] : []))
      if (deleted.length > 0) yield* repeatBatch(() => eraseEvents(db, deleted))
      const last = users.at(-1)
      if (!last || users.length < BATCH) break
      after = last.user_id
      yield
    }
  }
}

/** Finds the next users of a table. */
async function nextUsers(db: Kysely<DB>, table: 'webhook_deliveries' | 'event_users', after: string) {
  const isLeft = table === 'webhook_deliveries' ? sql`not is_erased` : undefined
  const users = { from: sql.table(table), value: sql`user_id`, after: sql`${after}::uuid`, where: isLeft }
  const { rows } = await sql<{ user_id: string; is_deleted: boolean }>`
    with recursive ${distinctValues('known', users)}, listed as materialized (
      select value as user_id from known where value is not null limit ${BATCH}
    )
    select user_id, ${isDeletedUser('listed.user_id')} as is_deleted from listed order by user_id`.execute(db)
  return rows
}
