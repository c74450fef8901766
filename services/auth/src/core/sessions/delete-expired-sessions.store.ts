import { deleteBatch } from '@services/common/database'
import { type Kysely, sql } from 'kysely'
import type { Position } from '../../db/position.ts'
import type { DB } from '../../db/tables.ts'

/** Deletes sessions past their `not_after` or time box; both are indexed. */
export function deleteExpiredSessions(
  db: Kysely<DB>,
  { now, startedBefore }: { now: Date; startedBefore: Date | null },
  limit: number,
): Promise<number> {
  const conditions = [sql`not_after < ${now}`, ...(startedBefore ? [sql`created_at < ${startedBefore}`] : [])]
  return deleteBatch(db, 'sessions', sql.join(conditions, sql` or `), limit)
}

/**
 * Deletes the inactive among the next `limit` sessions by age: every refresh would have to write an index on its time.
 * Returns the position to continue from; undefined at the end.
 */
export async function deleteInactiveSessions(
  db: Kysely<DB>,
  inactiveSince: Date,
  after: Position | undefined,
  limit: number,
): Promise<Position | undefined> {
  const { rows } = await sql<Position & { seen: number }>`
    with scanned as materialized (
      select id, created_at, refreshed_at from ${sql.table('sessions')}
      where created_at < ${inactiveSince} ${after ? sql`and (created_at, id) > (${after.created_at}::timestamptz, ${after.id}::uuid)` : sql``}
      order by created_at, id limit ${limit}
    ), gone as (
      delete from ${sql.table('sessions')} where id = any (array(
        select id from ${sql.table('sessions')}
        where id = any (array(select id from scanned where refreshed_at < ${inactiveSince}))
          and refreshed_at < ${inactiveSince} for update skip locked))
    )
    select id, created_at::text, (select count(*) from scanned) as seen
    from scanned order by scanned.created_at desc, id desc limit 1`.execute(db)
  const [last] = rows
  return last && last.seen === limit ? last : undefined
}
