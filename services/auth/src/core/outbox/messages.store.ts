import { deleteBatch } from '@services/common/database'
import { type Kysely, type SelectQueryBuilder, sql, type Transaction } from 'kysely'
import type { DB, MessageChannel, MessageState } from '../../db/tables.ts'

/** What an admin may see of a message: neither its address nor its content. */
const VISIBLE = [
  'id',
  'user_id',
  'channel',
  'kind',
  'state',
  'attempts',
  'last_error',
  'provider',
  'provider_message_id',
  'created_at',
  'sent_at',
] as const

export async function insertMessage(
  trx: Transaction<DB>,
  message: {
    id: string
    channel: MessageChannel
    kind: string
    userId: string | null
    sealed: string
    lifetimeSeconds: number | null
    now: Date
  },
): Promise<void> {
  const { id, channel, kind, userId, sealed, lifetimeSeconds, now } = message
  await trx
    .insertInto('messages')
    .values({
      id,
      channel,
      kind,
      user_id: userId,
      sealed,
      lifetime_seconds: lifetimeSeconds,
      created_at: now,
      updated_at: now,
    })
    .execute()
}

/** A message that still waits for its delivery. */
export function findQueuedMessage(db: Kysely<DB>, id: string) {
  return db
    .selectFrom('messages')
    .select(['id', 'user_id', 'channel', 'kind', 'sealed', 'lifetime_seconds'])
    .where('id', '=', id)
    .where('state', '=', 'queued')
    .executeTakeFirst()
}

export async function markSent(
  db: Kysely<DB>,
  id: string,
  { provider, providerMessageId, now }: { provider: string; providerMessageId: string | null; now: Date },
): Promise<void> {
  await db
    .updateTable('messages')
    .set((eb) => ({
      state: 'sent',
      attempts: eb('attempts', '+', 1),
      last_error: null,
      sealed: null,
      provider,
      provider_message_id: providerMessageId,
      sent_at: now,
      updated_at: now,
    }))
    .where('id', '=', id)
    .execute()
}

/** Without a reason: it was only pretended. */
export async function markDropped(db: Kysely<DB>, id: string, reason: string | null, now: Date): Promise<void> {
  await db
    .updateTable('messages')
    .set({ state: 'dropped', last_error: reason, sealed: null, updated_at: now })
    .where('id', '=', id)
    .where('state', '=', 'queued')
    .execute()
}

/** A failed try; the content is kept, for the next one or for an admin's. */
export async function noteFailure(
  db: Kysely<DB>,
  id: string,
  { error, isFinal, now }: { error: string; isFinal: boolean; now: Date },
): Promise<void> {
  await db
    .updateTable('messages')
    .set((eb) => ({
      state: isFinal ? ('failed' as const) : ('queued' as const),
      attempts: eb('attempts', '+', 1),
      last_error: error,
      updated_at: now,
    }))
    .where('id', '=', id)
    .where('state', '=', 'queued')
    .execute()
}

/** Puts a failed message back; undefined: it is none, or somebody else was first. */
export function requeueFailed(trx: Transaction<DB>, id: string, now: Date) {
  return trx
    .updateTable('messages')
    .set({ state: 'queued', updated_at: now })
    .where('id', '=', id)
    .where('state', '=', 'failed')
    .where('sealed', 'is not', null)
    .returning(VISIBLE)
    .executeTakeFirst()
}

export async function messageExists(db: Kysely<DB>, id: string): Promise<boolean> {
  return (await db.selectFrom('messages').select('id').where('id', '=', id).executeTakeFirst()) !== undefined
}

export interface MessageFilter {
  userId?: string | undefined
  state?: MessageState | undefined
  channel?: MessageChannel | undefined
}

export type VisibleMessage = Awaited<ReturnType<typeof listMessages>>['messages'][number]

/** A page, newest first, and how many match in all, counted up to `maxCounted` and no further. */
export async function listMessages(
  db: Kysely<DB>,
  filter: MessageFilter,
  page: { limit: number; offset: number },
  maxCounted: number,
) {
  const matching = filtered(db.selectFrom('messages'), filter)
  const [messages, { count }] = await Promise.all([
    matching
      .select(VISIBLE)
      .orderBy('created_at', 'desc')
      .orderBy('id')
      .limit(page.limit)
      .offset(page.offset)
      .execute(),
    db
      .selectFrom(matching.select('id').limit(maxCounted).as('counted'))
      .select((eb) => eb.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow(),
  ])
  return { messages, total: Number(count) }
}

function filtered(query: SelectQueryBuilder<DB, 'messages', object>, { userId, state, channel }: MessageFilter) {
  let matching = query
  if (userId) matching = matching.where('user_id', '=', userId)
  if (state) matching = matching.where('state', '=', state)
  if (channel) matching = matching.where('channel', '=', channel)
  return matching
}

/** Housekeeping: those of a state that were written before. */
export function deleteOldMessages(
  db: Kysely<DB>,
  states: readonly MessageState[],
  before: Date,
  limit: number,
): Promise<number> {
  const condition = sql`state in (${sql.join(states)}) and created_at < ${before}`
  return deleteBatch(db, 'messages', condition, limit)
}

/**
 * Housekeeping: messages without a sign of life for longer than any queue tries. Their job is lost (its last worker was
 * killed, or the queue was emptied); as failed ones they are seen and can be sent again.
 */
export async function failForgottenMessages(db: Kysely<DB>, before: Date, now: Date, limit: number): Promise<number> {
  const forgotten = db
    .selectFrom('messages')
    .select('id')
    .where('state', '=', 'queued')
    .where('created_at', '<', before)
    .where('updated_at', '<', before)
    .limit(limit)
  const { numUpdatedRows } = await db
    .updateTable('messages')
    .set({ state: 'failed', last_error: 'its job was lost', updated_at: now })
    .where('id', 'in', forgotten)
    .where('state', '=', 'queued')
    .executeTakeFirst()
  return Number(numUpdatedRows)
}
