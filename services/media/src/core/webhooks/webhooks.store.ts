import { type Insertable, type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'

export type Webhook = Omit<Selectable<DB['webhooks']>, 'secret'>

const COLUMNS = [
  'id',
  'token_id',
  'url',
  'events',
  'created_at',
  'failures',
  'failing_since',
  'paused_until',
  'disabled_at',
] as const

/** Returns undefined when the token has `most` webhooks. */
export async function insertWebhook(
  trx: Transaction<DB>,
  webhook: Insertable<DB['webhooks']>,
  { most }: { most: number },
): Promise<Webhook | undefined> {
  // Serializes the inserts of one token, so that the count is exact.
  await trx.selectFrom('api_tokens').select('id').where('id', '=', webhook.token_id).forNoKeyUpdate().execute()
  const { count } = await trx
    .selectFrom('webhooks')
    .select((column) => column.fn.countAll<number>().as('count'))
    .where('token_id', '=', webhook.token_id)
    .executeTakeFirstOrThrow()
  if (count >= most) return undefined
  return trx.insertInto('webhooks').values(webhook).returning(COLUMNS).executeTakeFirstOrThrow()
}

export async function listWebhooks(db: Kysely<DB>, tokenId: string): Promise<Webhook[]> {
  return db
    .selectFrom('webhooks')
    .select(COLUMNS)
    .where('token_id', '=', tokenId)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

export async function hasWebhook(db: Kysely<DB>, { id, tokenId }: { id: string; tokenId: string }): Promise<boolean> {
  const found = await db
    .selectFrom('webhooks')
    .select('id')
    .where('id', '=', id)
    .where('token_id', '=', tokenId)
    .executeTakeFirst()
  return found !== undefined
}

/** Returns undefined if deleted. A transaction that changes a webhook and deliveries begins with this lock. */
export const lockWebhook = (trx: Transaction<DB>, id: string): Promise<Webhook | undefined> =>
  trx.selectFrom('webhooks').select(COLUMNS).where('id', '=', id).forNoKeyUpdate().executeTakeFirst()

/** Deletes the webhook with its deliveries. False when there is none. */
export async function deleteWebhook(
  db: Kysely<DB>,
  { id, tokenId }: { id: string; tokenId: string },
): Promise<boolean> {
  const deleted = await db
    .deleteFrom('webhooks')
    .where('id', '=', id)
    .where('token_id', '=', tokenId)
    .returning('id')
    .executeTakeFirst()
  return deleted !== undefined
}

const NO_FAILURES = { failures: 0, failing_since: null, paused_until: null }

/** Clears the failures of a receiver that works again. One that is disabled stays so: 410 came meanwhile. */
export async function recordSuccess(trx: Transaction<DB>, id: string): Promise<void> {
  await trx.updateTable('webhooks').set(NO_FAILURES).where('id', '=', id).where('failures', '>', 0).execute()
}

export async function enableWebhook(trx: Transaction<DB>, id: string): Promise<void> {
  await trx
    .updateTable('webhooks')
    .set({ ...NO_FAILURES, disabled_at: null })
    .where('id', '=', id)
    .execute()
}

/** Counts a failure; no attempt is made before `pausedUntil`, and none after `disabledAt`. */
export async function recordFailure(
  trx: Transaction<DB>,
  id: string,
  { now, pausedUntil, disabledAt }: { now: Date; pausedUntil: Date | null; disabledAt: Date | null },
): Promise<void> {
  await trx
    .updateTable('webhooks')
    .set({
      failures: sql`failures + 1`,
      failing_since: sql`coalesce(failing_since, ${now})`,
      paused_until: pausedUntil,
      ...(disabledAt && { disabled_at: disabledAt }),
    })
    .where('id', '=', id)
    .execute()
}
