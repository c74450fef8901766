import { type Insertable, type Kysely, type Selectable, sql, type Transaction, type Updateable } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { deleteDeliveriesOf } from './unwanted-deliveries.store.ts'

export type Webhook = Selectable<DB['webhooks']>

/** Topic that is announced when a receiver is added, changed or deleted. */
export const RECEIVERS = 'webhooks'

/** Finds what all receivers want, and whether there are events, which the dispatcher may have to send. */
export async function findWanted(db: Kysely<DB>): Promise<{ wanted: string[]; hasEvents: boolean }> {
  const { rows } = await sql<{ wanted: string[]; hasEvents: boolean }>`
    select array(
        select distinct unnest(events) from ${sql.table('webhooks')} where disabled_reason is distinct from 'gone'
      ) as wanted,
      exists (select from ${sql.table('webhook_deliveries')}) as "hasEvents"`.execute(db)
  return rows[0] ?? { wanted: [], hasEvents: false }
}

export const listWebhooks = (db: Kysely<DB>): Promise<Webhook[]> =>
  db.selectFrom('webhooks').selectAll().orderBy('created_at').orderBy('id').execute()

export const findWebhook = (db: Kysely<DB>, id: string): Promise<Webhook | undefined> =>
  db.selectFrom('webhooks').selectAll().where('id', '=', id).executeTakeFirst()

/** Locks the row until the transaction ends. A transaction that changes a receiver and deliveries begins with it. */
export const lockWebhook = (trx: Transaction<DB>, id: string): Promise<Webhook | undefined> =>
  trx.selectFrom('webhooks').selectAll().where('id', '=', id).forNoKeyUpdate().executeTakeFirst()

/** Returns undefined when there are `most` already. */
export async function insertWebhook(
  trx: Transaction<DB>,
  webhook: Insertable<DB['webhooks']>,
  { most }: { most: number },
): Promise<Webhook | undefined> {
  // Serializes the inserts, so that the count is exact.
  await sql`lock table ${sql.table('webhooks')} in share row exclusive mode`.execute(trx)
  const { count } = await trx
    .selectFrom('webhooks')
    .select((column) => column.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  if (count >= most) return undefined
  return trx.insertInto('webhooks').values(webhook).returningAll().executeTakeFirstOrThrow()
}

export const updateWebhook = (
  trx: Kysely<DB>,
  id: string,
  changes: Updateable<DB['webhooks']>,
): Promise<Webhook | undefined> =>
  trx.updateTable('webhooks').set(changes).where('id', '=', id).returningAll().executeTakeFirst()

/** Deletes the receiver; false when there is none. Its deliveries are deleted here, or by housekeeping if many. */
export async function deleteWebhook(trx: Transaction<DB>, id: string): Promise<boolean> {
  const { numDeletedRows } = await trx.deleteFrom('webhooks').where('id', '=', id).executeTakeFirstOrThrow()
  await deleteDeliveriesOf(trx, id)
  return numDeletedRows > 0n
}

/** Housekeeping: deletes a receiver that the settings have not named since then. */
export async function* deleteUnset(db: Kysely<DB>, before: Date): AsyncGenerator<void, void> {
  await db.deleteFrom('webhooks').where('unset_at', '<', before).execute()
  yield
}

export const NO_FAILURES = { failures: 0, failing_since: null, paused_until: null }

/** Counts a failure; no attempt is made before `pausedUntil`. With a reason the receiver is disabled. */
export async function recordFailure(
  trx: Transaction<DB>,
  id: string,
  { now, pausedUntil, reason }: { now: Date; pausedUntil: Date | null; reason: 'gone' | 'failing' | undefined },
): Promise<void> {
  await trx
    .updateTable('webhooks')
    .set({
      failures: sql`failures + 1`,
      failing_since: sql`coalesce(failing_since, ${now})`,
      paused_until: pausedUntil,
      ...(reason && { enabled: false, disabled_reason: reason }),
    })
    .where('id', '=', id)
    .execute()
}

/** Stores a receiver whose id is known; the row of another process is replaced. */
export async function upsertWebhook(db: Kysely<DB>, webhook: Insertable<DB['webhooks']>): Promise<void> {
  const { id: _id, created_at: _created, ...changes } = webhook
  await db
    .insertInto('webhooks')
    .values(webhook)
    .onConflict((conflict) => conflict.column('id').doUpdateSet(changes))
    .execute()
}
