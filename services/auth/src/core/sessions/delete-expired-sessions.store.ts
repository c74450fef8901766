import { deleteBatch } from '@services/common/database'
import { type Kysely, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** Housekeeping: sessions past their absolute end or their time box; both are indexed. */
export function deleteExpiredSessions(
  db: Kysely<DB>,
  limits: { now: Date; startedBefore: Date | null },
  limit: number,
): Promise<number> {
  const { now, startedBefore } = limits
  const conditions = [sql`not_after < ${now}`, ...(startedBefore ? [sql`created_at < ${startedBefore}`] : [])]
  return deleteBatch(db, 'sessions', sql.join(conditions, sql` or `), limit)
}

/** A place in the order of creation; the time as PostgreSQL writes it, to the microsecond. */
export interface SessionPlace {
  created_at: string
  id: string
}

/**
 * Housekeeping: of the next `limit` sessions by age, those that were not refreshed since. Walked by age, because an index on
 * the time of the last refresh would be written by every refresh. Resolves to where to go on; undefined at the end.
 */
export async function deleteInactiveSessions(
  db: Kysely<DB>,
  inactiveSince: Date,
  after: SessionPlace | undefined,
  limit: number,
): Promise<SessionPlace | undefined> {
  const { rows } = await sql<SessionPlace & { seen: number }>`
    with looked_at as materialized (
      select id, created_at, refreshed_at from ${sql.table('sessions')}
      where created_at < ${inactiveSince} ${after ? sql`and (created_at, id) > (${after.created_at}::timestamptz, ${after.id}::uuid)` : sql``}
      order by created_at, id limit ${limit}
    ), gone as (
      delete from ${sql.table('sessions')} where id = any (array(
        select id from ${sql.table('sessions')}
        where id = any (array(select id from looked_at where refreshed_at < ${inactiveSince}))
          and refreshed_at < ${inactiveSince} for update skip locked))
    )
    select id, created_at::text, (select count(*) from looked_at) as seen
    from looked_at order by looked_at.created_at desc, id desc limit 1`.execute(db)
  const [last] = rows
  return last && last.seen === limit ? last : undefined
}
