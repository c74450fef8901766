import { type Kysely, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** A place in the order of creation; the time as PostgreSQL writes it, to the microsecond. */
export interface UserPlace {
  created_at: string
  id: string
}

/**
 * Housekeeping: of the next `limit` anonymous users by age, those of whom nothing is newer than `idleSince`: no
 * change, no sign-in (of an imported user it may be newer than the last change) and no refresh. Walked by age, as inactive
 * sessions are. A user who comes back in this very moment stays: users are locked, their sessions after them, and only then
 * is it seen for good when those were refreshed. `next` is where to go on; undefined at the end.
 */
export async function deleteIdleAnonymousUsers(
  db: Kysely<DB>,
  idleSince: Date,
  after: UserPlace | undefined,
  limit: number,
): Promise<{ deleted: number; next: UserPlace | undefined }> {
  const users = sql.table('users')
  const sessions = sql.table('sessions')
  const { rows } = await sql<UserPlace & { seen: number; deleted: number }>`
    with looked_at as materialized (
      select id, created_at from ${users}
      where is_anonymous and created_at < ${idleSince}
        ${after ? sql`and (created_at, id) > (${after.created_at}::timestamptz, ${after.id}::uuid)` : sql``}
      order by created_at, id limit ${limit}
    ), idle as materialized (
      select id from ${users} u
      where id = any (array(select id from looked_at)) and is_anonymous and deleted_at is null
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
    select id, created_at::text, (select count(*)::integer from looked_at) as seen,
      (select count(*)::integer from gone) as deleted
    from looked_at order by looked_at.created_at desc, id desc limit 1`.execute(db)
  const [last] = rows
  if (!last) return { deleted: 0, next: undefined }
  const { id, created_at, seen, deleted } = last
  return { deleted, next: seen === limit ? { id, created_at } : undefined }
}
