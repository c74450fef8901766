import { BATCH } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, sql, type Transaction } from 'kysely'
import { deleteSessions } from '../../db/ended-sessions.store.ts'
import { eraseEvents } from '../../db/erased-events.store.ts'
import { andBehind, type Position } from '../../db/position.ts'
import type { DB } from '../../db/tables.ts'
import { beginChanges, isWatched, wantsEvent } from '../../db/watched-users.ts'

/**
 * Deletes idle anonymous users, in order of age: no change, sign-in or refresh since `idleSince`. A user who returns at
 * this moment stays: users are locked before their sessions, whose refreshes are read last. Yields the number of each
 * batch.
 */
export async function* deleteIdleAnonymousUsers(db: Kysely<DB>, idleSince: Date): AsyncGenerator<number, void> {
  const users = sql.table('users')
  const sessions = sql.table('sessions')
  if (isWatched(db)) return yield* deleteWithEvents(db, idleSince)
  for (let after: Position | undefined; ; ) {
    const { rows } = await sql<Position & { seen: number; deleted: string[] }>`
      with scanned as materialized (
        select id, created_at from ${users}
        where is_anonymous and created_at < ${idleSince} ${andBehind(after)}
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
        array(select id from gone) as deleted
      from scanned order by scanned.created_at desc, id desc limit 1`.execute(db)
    const [last] = rows
    if (!last) return
    await eraseEvents(db, last.deleted)
    yield last.deleted.length
    if (last.seen < BATCH) return
    after = last
  }
}

/** Users of one transaction that are deleted with events. */
const AT_ONCE = 100

async function* deleteWithEvents(db: Kysely<DB>, idleSince: Date): AsyncGenerator<number, void> {
  for (let after: Position | undefined; ; ) {
    const { rows } = await sql<Position>`
      select id, created_at::text from ${sql.table('users')}
      where is_anonymous and created_at < ${idleSince} ${andBehind(after)}
      order by created_at, id limit ${AT_ONCE}`.execute(db)
    const ids = rows.map(({ id }) => id)
    if (ids.length > 0) yield await db.transaction().execute((trx) => deleteIdle(trx, ids, idleSince))
    if (rows.length < AT_ONCE) return
    after = rows.at(-1)
  }
}

/** Deletes those that are idle once they are locked. */
async function deleteIdle(trx: Transaction<DB>, ids: readonly string[], idleSince: Date): Promise<number> {
  const [users, sessions] = [sql.table('users'), sql.table('sessions')]
  const isUsed = sql`exists (select from ${sessions} s
    where s.user_id = ${sql.ref('users.id')} and s.refreshed_at >= ${idleSince})`
  const locked = await sql<{ id: string }>`
    select id from ${users}
    where id = any (${ids}::uuid[]) and is_anonymous and deleted_at is null and updated_at < ${idleSince}
      and (last_sign_in_at is null or last_sign_in_at < ${idleSince}) and not ${isUsed}
    order by id for update skip locked`.execute(trx)
  const lockedIds = locked.rows.map(({ id }) => id)
  await sql`select from ${sessions} where user_id = any (${lockedIds}::uuid[]) for update`.execute(trx)
  // A refresh may have come before the lock of its session.
  const idle = await sql<{ id: string }>`
    select id from ${users} where id = any (${lockedIds}::uuid[]) and not ${isUsed}`.execute(trx)
  const idleIds = idle.rows.map(({ id }) => id)
  await beginChanges(trx, idleIds)
  await eraseEvents(trx, idleIds)
  if (wantsEvent(trx, 'session.ended')) await deleteSessions(trx, sql`user_id = any (${idleIds}::uuid[])`)
  await sql`delete from ${users} where id = any (${idleIds}::uuid[])`.execute(trx)
  return idleIds.length
}
