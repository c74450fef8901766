import { type Kysely, sql } from 'kysely'
import type { Position } from '../../db/position.ts'
import type { DB } from '../../db/tables.ts'

/**
 * Deletes the idle among the next `limit` anonymous users by age: no change, sign-in or refresh since `idleSince`. A
 * user who returns at this moment stays: users are locked before their sessions, whose refreshes are read last. `next`
 * is the position to continue from; undefined at the end.
 */
export async function deleteIdleAnonymousUsers(
  db: Kysely<DB>,
  idleSince: Date,
  after: Position | undefined,
  limit: number,
): Promise<{ deleted: number; next: Position | undefined }> {
  const users = sql.table('users')
  const sessions = sql.table('sessions')
  const { rows } = await sql<Position & { seen: number; deleted: number }>`
    with scanned as materialized (
      select id, created_at from ${users}
      where is_anonymous and created_at < ${idleSince}
        ${after ? sql`and (created_at, id) > (${after.created_at}::timestamptz, ${after.id}::uuid)` : sql``}
      order by created_at, id limit ${limit}
    ), idle as materialized (
      select id from ${users} u
      where id = any (array(select id from scanned)) and is_anonymous and deleted_at is null
        and updated_at < ${idleSince} and (last_sign_in_at is null or last_sign_in_at < ${idleSince})
        and not exists (select from ${sessions} s where s.user_id = u.id and s.refreshed_at >= ${idleSince})
      for update of u skip locked
    ), their_sessions as materialized (
      select user_id, refreshed_at from ${sessions} where user_id = any (array(select id from idle)) for update
    ), gone as (
      delete from ${users} where id = any (array(
        select id from idle except select user_id from their_sessions where refreshed_at >= ${idleSince}))
      returning id
    )
    select id, created_at::text, (select count(*)::integer from scanned) as seen,
      (select count(*)::integer from gone) as deleted
    from scanned order by scanned.created_at desc, id desc limit 1`.execute(db)
  const [last] = rows
  if (!last) return { deleted: 0, next: undefined }
  const { id, created_at, seen, deleted } = last
  return { deleted, next: seen === limit ? { id, created_at } : undefined }
}
