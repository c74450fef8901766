import { BATCH } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, sql } from 'kysely'
import type { Position } from '../../db/position.ts'
import type { DB } from '../../db/tables.ts'

/**
 * Deletes idle anonymous users, in order of age: no change, sign-in or refresh since `idleSince`. A user who returns at
 * this moment stays: users are locked before their sessions, whose refreshes are read last. Yields the number of each batch.
 */
export async function* deleteIdleAnonymousUsers(db: Kysely<DB>, idleSince: Date): AsyncGenerator<number, void> {
  const users = sql.table('users')
  const sessions = sql.table('sessions')
  for (let after: Position | undefined; ; ) {
    const isNext = after ? sql`and (created_at, id) > (${after.created_at}::timestamptz, ${after.id}::uuid)` : sql``
    const { rows } = await sql<Position & { seen: number; deleted: number }>`
      with scanned as materialized (
        select id, created_at from ${users}
        where is_anonymous and created_at < ${idleSince} ${isNext}
        order by created_at, id limit ${BATCH}
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
    if (!last) return
    yield last.deleted
    if (last.seen < BATCH) return
    after = last
  }
}
