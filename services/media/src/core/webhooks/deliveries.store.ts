import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import type { AttemptResult } from '@services/common/webhooks/attempt-result'
import { type Expression, type Insertable, type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { DB, Scope, WebhookEvent } from '../../db/tables.ts'
import { type Clip, selectClips } from '../clips/clips.store.ts'
import { isLive } from '../tokens/tokens.store.ts'

export type Delivery = Selectable<DB['webhook_deliveries']>

/** A webhook with the token that owns it. */
export interface Listener {
  webhookId: string
  owner: string
}

/** Enabled webhooks for an event of these clips, or of all clips of a source. */
export async function findListeners(
  trx: Transaction<DB>,
  clips: { sourceId: string } | { clipIds: readonly string[] },
  event: WebhookEvent,
  now: Date,
): Promise<(Listener & { clip: Clip })[]> {
  const rows = await selectClips(trx)
    .innerJoin('webhooks', 'webhooks.token_id', 'clips.token_id')
    .innerJoin('api_tokens', 'api_tokens.id', 'clips.token_id')
    .select(['webhooks.id as webhookId', 'webhooks.token_id as owner'])
    .$if('sourceId' in clips, (query) => query.where('clips.source_id', '=', (clips as { sourceId: string }).sourceId))
    .$if('clipIds' in clips, (query) =>
      query.where('clips.id', '=', sql<string>`any(${(clips as { clipIds: readonly string[] }).clipIds}::text[])`),
    )
    .where('clips.deleted_at', 'is', null)
    .where('webhooks.disabled_at', 'is', null)
    .where('webhooks.events', '@>', sql<WebhookEvent[]>`array[${event}::text]`)
    .where(isLive(now))
    // Waits for a webhook that is being deleted and skips it: a delivery to it would fail this transaction.
    .forKeyShare('webhooks')
    .execute()
  return rows.map(({ webhookId, owner, ...clip }) => ({ webhookId, owner, clip }))
}

/** Enabled webhooks of admins for an event. */
export const findAdminListeners = (trx: Transaction<DB>, event: WebhookEvent, now: Date): Promise<Listener[]> =>
  selectListeners(trx, event, now).where('api_tokens.scopes', '@>', sql<Scope[]>`array['admin']`).execute()

/** Enabled webhooks of a token for an event that is of no clip. */
export const findTokenListeners = (
  trx: Transaction<DB>,
  tokenId: string,
  event: WebhookEvent,
  now: Date,
): Promise<Listener[]> => selectListeners(trx, event, now).where('webhooks.token_id', '=', tokenId).execute()

const selectListeners = (trx: Transaction<DB>, event: WebhookEvent, now: Date) =>
  trx
    .selectFrom('webhooks')
    .innerJoin('api_tokens', 'api_tokens.id', 'webhooks.token_id')
    .select(['webhooks.id as webhookId', 'webhooks.token_id as owner'])
    .where('webhooks.disabled_at', 'is', null)
    .where('webhooks.events', '@>', sql<WebhookEvent[]>`array[${event}::text]`)
    .where(isLive(now))
    .forKeyShare('webhooks')

export async function insertDeliveries(
  trx: Transaction<DB>,
  deliveries: readonly Insertable<DB['webhook_deliveries']>[],
): Promise<void> {
  await trx.insertInto('webhook_deliveries').values(deliveries).execute()
}

/** A webhook with the scopes of its token; null for one that is expired or revoked. */
type Receiver = Selectable<DB['webhooks']> & { scopes: Scope[] | null }

/** The delivery with its receiver, if this attempt is its next. */
export async function findAttempt(
  db: Kysely<DB>,
  { deliveryId, attempt }: { deliveryId: string; attempt: number },
  now: Date,
): Promise<(Delivery & { receiver: Receiver }) | undefined> {
  const delivery = await db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('id', '=', deliveryId)
    .where('attempts', '=', attempt)
    .where('state', '=', 'pending')
    .executeTakeFirst()
  if (!delivery) return undefined
  const receiver = await db
    .selectFrom('webhooks')
    .leftJoin('api_tokens', (join) => join.onRef('api_tokens.id', '=', 'webhooks.token_id').on(isLive(now)))
    .selectAll('webhooks')
    .select('api_tokens.scopes')
    .where('webhooks.id', '=', delivery.webhook_id)
    .executeTakeFirst()
  return receiver && { ...delivery, receiver }
}

/** Returns false when another worker began it. An attempt that has not ended by `until` counts as lost. */
export async function beginAttempt(
  db: Kysely<DB>,
  { id, attempts }: Attempt,
  { now, until }: { now: Date; until: Date },
): Promise<boolean> {
  const begun = await db
    .updateTable('webhook_deliveries')
    .set({ attempts: attempts + 1, last_attempt_at: now, next_attempt_at: until })
    .where('id', '=', id)
    .where('attempts', '=', attempts)
    .where('state', '=', 'pending')
    .returning('id')
    .executeTakeFirst()
  return begun !== undefined
}

type Attempt = Pick<Delivery, 'id' | 'attempts'>

/** Locks the delivery while this attempt is its last. It may have been sent again meanwhile. */
export const lockAttempt = (
  trx: Transaction<DB>,
  { id, attempts }: Attempt,
): Promise<Pick<Delivery, 'attempts_before' | 'give_up_at'> | undefined> =>
  trx
    .selectFrom('webhook_deliveries')
    .select(['attempts_before', 'give_up_at'])
    .where('id', '=', id)
    .where('attempts', '=', attempts)
    .where('state', '=', 'pending')
    .forNoKeyUpdate()
    .executeTakeFirst()

/** Ends the delivery, unless another attempt has begun. */
export async function endDelivery(
  trx: Transaction<DB>,
  { id, attempts }: Attempt,
  state: 'delivered' | 'failed',
  { status, error }: AttemptResult,
): Promise<void> {
  await trx
    .updateTable('webhook_deliveries')
    .set({ state, next_attempt_at: null, last_status: status, last_error: error })
    .where('id', '=', id)
    .where('attempts', '=', attempts)
    .where('state', '=', 'pending')
    .execute()
}

/** Without `result` no attempt was made. */
export async function postponeDelivery(
  trx: Kysely<DB>,
  id: string,
  until: Date,
  result?: AttemptResult,
): Promise<void> {
  await trx
    .updateTable('webhook_deliveries')
    .set({ next_attempt_at: until, ...(result && { last_status: result.status, last_error: result.error }) })
    .where('id', '=', id)
    .where('state', '=', 'pending')
    .execute()
}

type Taken = Pick<Delivery, 'id' | 'attempts'> & Pick<Listener, 'owner'>

/** Takes the oldest due deliveries of a webhook; until `until` they are due for no other caller. */
export async function takeDue(
  trx: Transaction<DB>,
  webhookId: string,
  { now, until, limit }: { now: Date; until: Date; limit: number },
): Promise<Taken[]> {
  const due = trx
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('webhook_id', '=', webhookId)
    .where(sql<boolean>`state = 'pending'`)
    .where('next_attempt_at', '<=', now)
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .forUpdate()
    .skipLocked()
  return takeUntil(trx, due, until)
}

/** Makes the delivery pending again, whatever its state. Undefined when there is none. */
export async function restartDelivery(
  trx: Transaction<DB>,
  { id, webhookId }: { id: string; webhookId: string },
  { now, giveUpAt }: { now: Date; giveUpAt: Date },
): Promise<Delivery | undefined> {
  return trx
    .updateTable('webhook_deliveries')
    .set({ state: 'pending', next_attempt_at: now, give_up_at: giveUpAt, attempts_before: sql`attempts` })
    .where('id', '=', id)
    .where('webhook_id', '=', webhookId)
    .returningAll()
    .executeTakeFirst()
}

interface Page {
  after: { createdAt: Date; id: string } | undefined
  limit: number
}

export const listDeliveries = (db: Kysely<DB>, webhookId: string, page: Page): Promise<Delivery[]> =>
  selectPage(db, page).where('webhook_id', '=', webhookId).execute()

/** Deliveries of the webhooks of a token about a clip. */
export const listDeliveriesOfClip = (
  db: Kysely<DB>,
  { clipId, tokenId }: { clipId: string; tokenId: string },
  page: Page,
): Promise<Delivery[]> =>
  selectPage(db, page)
    .where(sql<boolean>`payload -> 'data' ->> 'id' = ${clipId}`)
    // Other events are about something else that has an id.
    .where(sql<boolean>`type like 'media.%'`)
    .where('webhook_id', 'in', db.selectFrom('webhooks').select('id').where('token_id', '=', tokenId))
    .execute()

/** Newest first. */
function selectPage(db: Kysely<DB>, { after, limit }: Page) {
  const query = db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
  if (!after) return query
  return query.where((column) =>
    column(column.refTuple('created_at', 'id'), '<', column.tuple(after.createdAt, after.id)),
  )
}

/**
 * The array makes PostgreSQL run the subquery once. With `in (…)` a nested loop may run it for each row. It then skips
 * the rows that are updated already and takes more than its limit.
 */
const takeUntil = (trx: Transaction<DB>, ids: Expression<{ id: string }>, until: Date) =>
  trx
    .updateTable('webhook_deliveries')
    .set({ next_attempt_at: until })
    .where(sql<boolean>`id = any (array(${ids}))`)
    .returning((row) => [
      'id',
      'attempts',
      row
        .selectFrom('webhooks')
        .select('token_id')
        .whereRef('webhooks.id', '=', 'webhook_id')
        .$asScalar()
        .$notNull()
        .as('owner'),
    ])
    .execute()

/** Takes deliveries that were due before `before`, and makes them due `now`. */
export async function takeOverdue(
  trx: Transaction<DB>,
  { before, now, limit }: { before: Date; now: Date; limit: number },
): Promise<Taken[]> {
  const overdue = trx
    .selectFrom('webhook_deliveries')
    .select('id')
    .where(sql<boolean>`state = 'pending'`)
    .where('next_attempt_at', '<', before)
    .limit(limit)
    .forUpdate()
    .skipLocked()
  return takeUntil(trx, overdue, now)
}

export const deleteDeliveriesBefore = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'webhook_deliveries', { column: 'created_at', before, condition: sql`state <> 'pending'` })
