import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** UTC day of a moment, as in 2026-11-21. */
export const dayOf = (moment: Date): string => moment.toISOString().slice(0, 10)

/** First of the thirty days that end today. */
export const monthBefore = (now: Date): string => dayOf(new Date(now.getTime() - 29 * DAY_MS))

/** Counts a clip and its bytes; returns the day's bytes. The row stays locked, so the day's next clip sees this. */
export async function recordClip(
  trx: Transaction<DB>,
  { tokenId, day, bytes }: { tokenId: string; day: string; bytes: number },
): Promise<number> {
  const recorded = await trx
    .insertInto('token_days')
    .values({ token_id: tokenId, day, clips: 1, bytes })
    .onConflict((conflict) =>
      conflict.columns(['token_id', 'day']).doUpdateSet((column) => ({
        clips: sql`${column.ref('token_days.clips')} + 1`,
        bytes: sql`${column.ref('token_days.bytes')} + excluded.bytes`,
      })),
    )
    .returning('bytes')
    .executeTakeFirstOrThrow()
  return recorded.bytes
}

export interface CountedRequests {
  tokenId: string
  day: string
  requests: number
}

export async function addRequests(db: Kysely<DB>, counted: readonly CountedRequests[]): Promise<void> {
  await db
    .insertInto('token_days')
    .values(counted.map(({ tokenId, day, requests }) => ({ token_id: tokenId, day, requests })))
    .onConflict((conflict) =>
      conflict.columns(['token_id', 'day']).doUpdateSet((column) => ({
        requests: sql`${column.ref('token_days.requests')} + excluded.requests`,
      })),
    )
    .execute()
}

export async function bytesOfDay(db: Kysely<DB>, tokenId: string, day: string): Promise<number> {
  const found = await db
    .selectFrom('token_days')
    .select('bytes')
    .where('token_id', '=', tokenId)
    .where('day', '=', day)
    .executeTakeFirst()
  return found?.bytes ?? 0
}

/** Stored bytes of a token: sources and files. Shared ones count for each clip, so that no usage depends on others. */
export async function storedBytes(db: Kysely<DB>, tokenId: string): Promise<{ used: number; reserved: number }> {
  const found = await db
    .selectFrom('token_storage')
    .select(['bytes as used', 'reserved_bytes as reserved'])
    .where('token_id', '=', tokenId)
    .executeTakeFirst()
  return found ?? { used: 0, reserved: 0 }
}

export type TokenUsage = Awaited<ReturnType<typeof listUsage>>[number]

const DAY_MS = 86_400_000

/** Usage of one token or of all, oldest token first. Calls of the last seconds may be missing. */
export async function listUsage(db: Kysely<DB>, id: string | undefined, now: Date) {
  const today = dayOf(now)
  const monthAgo = monthBefore(now)
  const rows = await db
    .selectFrom('api_tokens')
    .leftJoinLateral(
      (column) =>
        column
          .selectFrom('token_days')
          .select([
            sumOf('requests', sql`day = ${today}`).as('requests_today'),
            sumOf('clips', sql`day = ${today}`).as('clips_today'),
            sumOf('bytes', sql`day = ${today}`).as('bytes_today'),
            sumOf('requests', sql`true`).as('requests'),
            sumOf('clips', sql`true`).as('clips'),
            sumOf('bytes', sql`true`).as('bytes'),
          ])
          .whereRef('token_days.token_id', '=', 'api_tokens.id')
          .where('day', '>=', monthAgo)
          .as('days'),
      (join) => join.onTrue(),
    )
    .leftJoin('token_storage', 'token_storage.token_id', 'api_tokens.id')
    .select(['id', 'name', 'requests_today', 'clips_today', 'bytes_today', 'requests', 'days.clips', 'days.bytes'])
    .select(['token_storage.clips as stored_clips', 'token_storage.bytes as stored_bytes', 'reserved_bytes'])
    .$if(id !== undefined, (query) => query.where('id', '=', id as string))
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    /** `reserved_bytes`: most that files of processing clips may add; a quota counts them too. */
    stored: { clips: row.stored_clips ?? 0, bytes: row.stored_bytes ?? 0, reserved_bytes: row.reserved_bytes ?? 0 },
    today: { requests: row.requests_today ?? 0, clips: row.clips_today ?? 0, bytes: row.bytes_today ?? 0 },
    last_30_days: { requests: row.requests ?? 0, clips: row.clips ?? 0, bytes: row.bytes ?? 0 },
  }))
}

export interface TokenDay {
  day: string
  requests: number
  clips: number
  bytes: number
}

/** Days on which a token was used, oldest first. Calls of the last seconds may be missing. */
export const listTokenDays = (
  db: Kysely<DB>,
  tokenId: string,
  { from, to }: { from: string; to: string },
): Promise<TokenDay[]> =>
  db
    .selectFrom('token_days')
    .select([sql<string>`day::text`.as('day'), 'requests', 'clips', 'bytes'])
    .where('token_id', '=', tokenId)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .orderBy('token_days.day')
    .execute()

const sumOf = (name: 'requests' | 'clips' | 'bytes', condition: RawBuilder<unknown>) =>
  sql<number>`coalesce(sum(${sql.ref(name)}) filter (where ${condition}), 0)::bigint`

export const deleteDaysBefore = (db: Kysely<DB>, day: string) =>
  deleteInBatches(db, 'token_days', { column: 'day', before: day })
