import { BATCH } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { Position } from '../../db/position.ts'
import type { DB } from '../../db/tables.ts'
import { beginChange, isWatched } from '../../db/watched-users.ts'

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

/** Users of one transaction that are deleted with events. */
const AT_ONCE = 100

async function* deleteWithEvents(db: Kysely<DB>, idleSince: Date): AsyncGenerator<number, void> {
  const isUsed = sql<boolean>`exists (select from ${sql.table('sessions')} s
    where s.user_id = ${sql.ref('users.id')} and s.refreshed_at >= ${idleSince})`
  const deleteSome = async (trx: Transaction<DB>) => {
    const idle = await trx
      .selectFrom('users')
      .select('id')
      .where(sql<boolean>`is_anonymous`)
      .where('deleted_at', 'is', null)
      .where('created_at', '<', idleSince)
      .where('updated_at', '<', idleSince)
      .where((eb) => eb.or([eb('last_sign_in_at', 'is', null), eb('last_sign_in_at', '<', idleSince)]))
      .where(sql<boolean>`not ${isUsed}`)
      .orderBy('created_at')
      .orderBy('id')
      .limit(AT_ONCE)
      .forUpdate()
      .skipLocked()
      .execute()
    const ids = idle.map(({ id }) => id)
    for (const id of ids) await beginChange(trx, id)
    await sql`select from ${sql.table('sessions')} where user_id = any (${ids}::uuid[]) for update`.execute(trx)
    const { numAffectedRows } = await sql`delete from ${sql.table('users')}
      where id = any (${ids}::uuid[]) and not ${isUsed}`.execute(trx)
    return Number(numAffectedRows ?? 0)
  }
  for (let deleted = AT_ONCE; deleted > 0; ) {
    deleted = await db.transaction().execute(deleteSome)
    yield deleted
  }
}
