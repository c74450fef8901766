import { countedPage, type PageOf, type Total, totalOf } from '@services/common/database/counted-page'
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Insertable, type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import { cutPage, isOlder, type Position } from '../../db/position.ts'
import type { DB, MessageChannel, MessageState } from '../../db/tables.ts'

export const MESSAGE_CHANNELS: readonly MessageChannel[] = ['mail', 'sms']
export const MESSAGE_STATES: readonly MessageState[] = ['queued', 'sent', 'failed', 'dropped']

/** Columns an admin may read: neither address nor content. */
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

type NewMessage = Omit<Insertable<DB['messages']>, 'created_at' | 'updated_at'>

export async function insertMessage(trx: Transaction<DB>, message: NewMessage, now: Date): Promise<void> {
  await trx
    .insertInto('messages')
    .values({ ...message, created_at: now, updated_at: now })
    .execute()
}

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

const updateQueued = (db: Kysely<DB>, id: string) =>
  db.updateTable('messages').where('id', '=', id).where('state', '=', 'queued')

export const REPLACED = 'its link or code was used or replaced meanwhile'

/** Ends a message that is not worth sending; `reason` is null for one that was only pretended. */
export async function markDropped(db: Kysely<DB>, id: string, reason: string | null, now: Date): Promise<void> {
  await updateQueued(db, id).set({ state: 'dropped', last_error: reason, sealed: null, updated_at: now }).execute()
}

/** Drops the user's queued messages of a kind, for a newer one; returns whether there were any. */
export async function dropQueued(trx: Transaction<DB>, userId: string, kind: string, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('messages')
    .set({ state: 'dropped', last_error: REPLACED, sealed: null, updated_at: now })
    .where('user_id', '=', userId)
    .where('kind', '=', kind)
    .where('state', '=', 'queued')
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/**
 * Notes a failed attempt, or why none was made. The content is kept for the next one, or for an admin's retry. False:
 * the message is no longer queued, and stays as it is.
 */
export async function recordFailure(
  db: Kysely<DB>,
  id: string,
  { error, isFinal, wasAttempted, now }: { error: string; isFinal: boolean; wasAttempted: boolean; now: Date },
): Promise<boolean> {
  const state = isFinal ? 'failed' : 'queued'
  const made = wasAttempted ? 1 : 0
  const { numUpdatedRows } = await updateQueued(db, id)
    .set((eb) => ({ state, attempts: eb('attempts', '+', made), last_error: error, updated_at: now }))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export type FailedMessage = Pick<
  Selectable<DB['messages']>,
  'id' | 'user_id' | 'channel' | 'kind' | 'lifetime_seconds' | 'last_error'
>

/** Puts a failed message back, with its content; undefined: it has not failed, or another request has put it back. */
export function requeueFailed(trx: Transaction<DB>, id: string, now: Date) {
  return trx
    .updateTable('messages')
    .set({ state: 'queued', updated_at: now })
    .where('id', '=', id)
    .where('state', '=', 'failed')
    .where('sealed', 'is not', null)
    .returning([...VISIBLE, 'sealed'])
    .executeTakeFirst()
}

export async function messageExists(db: Kysely<DB>, id: string): Promise<boolean> {
  return (await db.selectFrom('messages').select('id').where('id', '=', id).executeTakeFirst()) !== undefined
}

export interface MessageFilter {
  /** Users they are for; none is different from undefined. */
  userIds?: readonly string[] | undefined
  state?: MessageState | undefined
  channel?: MessageChannel | undefined
  kind?: string | undefined
}

export type VisibleMessage = Pick<Selectable<DB['messages']>, (typeof VISIBLE)[number]>

/** Lists a page, newest first, and its total. */
export async function listMessages(
  db: Kysely<DB>,
  filter: MessageFilter,
  page: PageOf,
): Promise<{ rows: VisibleMessage[]; total: Total }> {
  const { rows } = await sql<{ total: number } & (VisibleMessage | { id: null })>`
    with ${countedPage(matching(filter), sql`created_at desc, id`, page)}
    select counted.total, ${COLUMNS}
    from counted left join page on true left join ${sql.table('messages')} message on message.id = page.id
    order by page.created_at desc, page.id`.execute(db)
  const messages = rows.flatMap(({ total: _, ...message }) => (message.id === null ? [] : [message]))
  return { rows: messages, total: await totalOf(db, matching(filter), page, rows, messages.length) }
}

/** Lists messages after a position, newest first; `next` is that of the last one, if more follow. */
export async function listMessagesAfter(
  db: Kysely<DB>,
  filter: MessageFilter,
  { limit, after }: { limit: number; after: Position | undefined },
): Promise<{ messages: VisibleMessage[]; next: Position | undefined }> {
  const { rows } = await sql<VisibleMessage & { place: string }>`
    with page as (${matching(filter, after)} order by created_at desc, id limit ${limit + 1})
    select to_json(page.created_at) #>> '{}' as place, ${COLUMNS}
    from page join ${sql.table('messages')} message on message.id = page.id
    order by page.created_at desc, page.id`.execute(db)
  const { page: messages, next } = cutPage(rows, limit)
  return { messages, next }
}

const COLUMNS = sql.join(VISIBLE.map((column) => sql.ref(`message.${column}`)))

function matching({ userIds, ...equal }: MessageFilter, after?: Position) {
  const conditions = [
    ...(userIds ? [sql`user_id = any (${userIds}::uuid[])`] : []),
    ...Object.entries(equal).flatMap(([column, value]) => (value ? [sql`${sql.ref(column)} = ${value}`] : [])),
    ...(after ? [isOlder(after)] : []),
  ]
  const where = conditions.length > 0 ? sql`where ${sql.join(conditions, sql` and `)}` : sql``
  return sql`select id, created_at from ${sql.table('messages')} ${where}`
}

/** Housekeeping: messages in this state that were written before. */
export const deleteOldMessages = (db: Kysely<DB>, state: MessageState, before: Date) =>
  deleteInBatches(db, 'messages', { column: 'created_at', before, condition: sql`state = ${state}` })

/**
 * Fails queued messages that had no attempt since `before`, which is longer than any queue retries. Their job was lost:
 * its last worker was killed, or the queue was emptied. A failed message is listed and can be sent again. Its user is
 * locked, and those that are locked elsewhere have the next round.
 */
export async function failForgottenMessages(
  trx: Transaction<DB>,
  before: Date,
  now: Date,
  limit: number,
): Promise<FailedMessage[]> {
  const [messages, users] = [sql.table('messages'), sql.table('users')]
  const { rows } = await sql<FailedMessage>`
    with forgotten as (
      select id, user_id from ${messages}
      where state = 'queued' and created_at < ${before} and updated_at < ${before} limit ${limit}
    ), owners as (
      select id from ${users} where id in (select user_id from forgotten) order by id for no key update skip locked
    )
    update ${messages} set state = 'failed', last_error = 'its job was lost', updated_at = ${now}
    where state = 'queued' and id in (
      select id from forgotten
      where user_id in (select id from owners) or not exists (select from ${users} u where u.id = forgotten.user_id))
    returning id, user_id, channel, kind, lifetime_seconds, last_error`.execute(trx)
  return rows
}
