// Deliveries that end without an attempt. Each statement is about a batch and skips locked rows, so that no backlog
// makes it long, and no attempt waits for it.
import { distinctValues } from '@services/common/database/distinct-values'
import { BATCH, deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'

/**
 * Fails deliveries that wait for a disabled receiver: past their time, or all when it wants no more events. An enabled
 * receiver gets at least one attempt at each, however late.
 */
export async function failUnwanted(db: Kysely<DB>, now: Date, limit: number): Promise<number> {
  const [receivers, deliveries] = [sql.table('webhooks'), sql.table('webhook_deliveries')]
  const { numAffectedRows } = await sql`
    update ${deliveries} delivery set state = 'failed', next_at = null, is_running = false,
      last_error = coalesce((select disabled_reason from ${receivers} receiver
        where receiver.id = delivery.webhook_id and receiver.disabled_reason = 'gone'), last_error, 'given_up')
    where ctid = any (array(
      select expired.ctid from ${receivers} receiver, lateral (
        select waiting.ctid from ${deliveries} waiting
        where waiting.webhook_id = receiver.id and waiting.state = 'waiting'
          and (receiver.disabled_reason = 'gone' or (waiting.give_up_at < ${now} and waiting.next_at < ${now}))
        limit ${limit} for update of waiting skip locked) expired
      where not receiver.enabled or receiver.unset_at is not null
      limit ${limit}))`.execute(db)
  return Number(numAffectedRows ?? 0)
}

/** Deletes ended deliveries. */
export const deleteOldDeliveries = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'webhook_deliveries', { column: 'created_at', before, condition: sql`state <> 'waiting'` })

/** Deletes users whose events are deleted. The offset keeps the planner from a join that reads both tables whole. */
export const deleteOldEventUsers = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'event_users', {
    column: 'created_at',
    before,
    condition: sql`not exists (
      select from ${sql.table('webhook_deliveries')} event
      where event.created_at = ${sql.ref('event_users.created_at')}
        and event.event_user_id = ${sql.ref('event_users.id')} offset 0)`,
  })

/** Deletes some deliveries of a receiver that exists no more; returns their number. */
export async function deleteDeliveriesOf(db: Kysely<DB>, webhookId: string, limit = BATCH): Promise<number> {
  const deliveries = sql.table('webhook_deliveries')
  const { numAffectedRows } = await sql`
    delete from ${deliveries} where ctid = any (array(
      select ctid from ${deliveries} where webhook_id = ${webhookId}
        and not exists (select from ${sql.table('webhooks')} where id = ${webhookId})
      limit ${limit} for update skip locked))`.execute(db)
  return Number(numAffectedRows ?? 0)
}

/**
 * Deletes deliveries of receivers that exist no more. The receiver of the settings has a fixed id and may be back by
 * the time of a batch.
 */
export async function* deleteOrphans(db: Kysely<DB>): AsyncGenerator<void, void> {
  const { rows } = await sql<{ id: string }>`
    with recursive ${distinctValues('known', { from: sql.table('webhook_deliveries'), value: sql`webhook_id` })}
    select value as id from known where value is not null and value not in (select id from ${sql.table('webhooks')})`.execute(
    db,
  )
  for (const { id } of rows) {
    while ((await deleteDeliveriesOf(db, id)) >= BATCH) yield
    yield
  }
}
