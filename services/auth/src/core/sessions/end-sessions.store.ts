import { BATCH, deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { Position } from '../../db/position.ts'
import type { DB } from '../../db/tables.ts'
import { beginChange, isWatched, noteChange } from '../../db/watched-users.ts'
import {
  type Choice,
  EVERY,
  endingDevices,
  exceptOfSession,
  loweringBegun,
  ofSession,
} from '../trusted-devices/trusted-devices.store.ts'
import { ADDRESS_METHODS } from './methods.ts'
import type { SessionLimits } from './session-limits.ts'

type Limits = Pick<SessionLimits, 'singlePerUser'>

/** Matches the session and, where only the newest is valid, those it replaced: they would become the newest again. */
const isSessionOrReplaced = ({ singlePerUser }: Limits, id: string) =>
  singlePerUser
    ? sql<boolean>`(user_id, created_at, id) in (
        select older.user_id, older.created_at, older.id
        from ${sql.table('sessions')} this join ${sql.table('sessions')} older on older.user_id = this.user_id
          and (older.created_at, older.id) <= (this.created_at, this.id)
        where this.id = ${id})`
    : sql<boolean>`(id = ${id})`

/**
 * Ends a session whose token was reused, and its trusted devices: a thief has read them in the same place. False when
 * the counter no longer shows a reuse.
 */
export async function endReusedSession(
  trx: Transaction<DB>,
  limits: Limits,
  { userId, id, presented }: { userId: string; id: string; presented: number },
): Promise<boolean> {
  const reused = trx
    .selectFrom('sessions')
    .select('id')
    .where('id', '=', id)
    .where('refresh_counter', '>', presented)
    .forUpdate()
  if (!(await reused.executeTakeFirst())) return false
  return endSessionAndDevices(trx, limits, userId, id)
}

/** Ends a session of this user, and the devices that it trusted or began with; false when there is none. */
export async function endSessionAndDevices(
  trx: Transaction<DB>,
  limits: Limits,
  userId: string,
  id: string,
): Promise<boolean> {
  const ends = isSessionOrReplaced(limits, id)
  const { numDeletedRows } = await trx
    .with('ended_devices', (db) => endingDevices(db, userId, ofSession(id)))
    // One statement changes a row once: the ended sessions are not lowered before.
    .with('lowered', (db) => loweringBegun(db, userId).where(sql<boolean>`not ${ends}`))
    .deleteFrom('sessions')
    .where('user_id', '=', userId)
    .where(ends)
    .executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}

/** Ends a session of this user; false when there is none. */
export async function endSession(trx: Transaction<DB>, limits: Limits, userId: string, id: string): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('sessions')
    .where('user_id', '=', userId)
    .where(isSessionOrReplaced(limits, id))
    .executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}

/** Ends all sessions of a user, or all but one, and the trusted devices. Returns the number of sessions. */
export const endSessions = (trx: Transaction<DB>, userId: string, exceptId?: string): Promise<number> =>
  endAllBut(trx, userId, exceptId, EVERY)

/** Ends the other sessions, and the trusted devices but those that this session trusted or began with. */
export const endOtherSessions = (trx: Transaction<DB>, userId: string, sessionId: string): Promise<number> =>
  endAllBut(trx, userId, sessionId, exceptOfSession(sessionId))

async function endAllBut(trx: Transaction<DB>, userId: string, exceptId: string | undefined, devices: Choice) {
  let query = trx
    .with('ended_devices', (db) => endingDevices(db, userId, devices))
    .deleteFrom('sessions')
    .where('user_id', '=', userId)
  if (exceptId) query = query.where('id', '!=', exceptId)
  const { numDeletedRows } = await query.executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/**
 * Ends sessions that this identity may have started. Provider: sessions with its id, and OAuth sessions without any,
 * whose account was not linked. Address: sessions by link or code. `exceptId` stays.
 */
export async function endSessionsOfIdentity(
  trx: Transaction<DB>,
  { userId, identity, exceptId }: { userId: string; identity: { id: string; provider: string }; exceptId: string },
): Promise<void> {
  const isOfAddress = identity.provider === 'email' || identity.provider === 'phone'
  const beganBy = (methods: readonly string[]) =>
    sql<boolean>`exists (select from jsonb_array_elements(amr) entry where entry ->> 'method' = any (${methods}::text[]))`
  await trx
    .deleteFrom('sessions')
    .where('user_id', '=', userId)
    .where('id', '!=', exceptId)
    .where((eb) =>
      isOfAddress
        ? beganBy(ADDRESS_METHODS)
        : eb.or([eb('identity_id', '=', identity.id), eb.and([eb('identity_id', 'is', null), beganBy(['oauth'])])]),
    )
    .execute()
}

/** Ends the sessions of sign-ins with this identity or passkey; the session `exceptId` stays. */
export async function endSessionsStartedBy(
  trx: Transaction<DB>,
  { userId, identityId, exceptId }: { userId: string; identityId: string; exceptId: string | undefined },
): Promise<void> {
  let query = trx.deleteFrom('sessions').where('user_id', '=', userId).where('identity_id', '=', identityId)
  if (exceptId) query = query.where('id', '!=', exceptId)
  await query.execute()
}

/** Deletes sessions past this limit; both columns are indexed. */
export const deleteEndedSessions = (db: Kysely<DB>, column: 'not_after' | 'created_at', before: Date) =>
  isWatched(db)
    ? endWithEvents(db, sql`${sql.ref(column)} < ${before}`)
    : deleteInBatches(db, 'sessions', { column, before })

/** Users whose sessions one transaction ends with events. */
const USERS_AT_ONCE = 100

/** Ends sessions with the users locked, whose changes are compared. */
async function* endWithEvents(db: Kysely<DB>, hasEnded: RawBuilder<unknown>): AsyncGenerator<void, void> {
  const endSome = async (trx: Transaction<DB>) => {
    const owners = sql`select user_id from ${sql.table('sessions')} where ${hasEnded} limit ${USERS_AT_ONCE}`
    const users = await trx
      .selectFrom('users')
      .select('id')
      .where(sql<boolean>`id = any (array(${owners}))`)
      .forUpdate()
      .skipLocked()
      .execute()
    for (const { id } of users) {
      await beginChange(trx, id)
      await noteChange(trx, { userId: id, sessionsEnd: 'expired' })
    }
    const { numAffectedRows } = await sql`delete from ${sql.table('sessions')}
      where user_id = any (${users.map(({ id }) => id)}::uuid[]) and ${hasEnded}`.execute(trx)
    return Number(numAffectedRows ?? 0)
  }
  while ((await db.transaction().execute(endSome)) > 0) yield
}

/**
 * Deletes sessions without a refresh since `idleSince`, in order of age: every refresh would have to write an index on
 * its time. With one session per user: keeps the newest row, because deleting it would revive the older one.
 */
export async function* deleteIdleSessions(
  db: Kysely<DB>,
  idleSince: Date,
  { singlePerUser }: Limits,
): AsyncGenerator<void, void> {
  const sessions = sql.table('sessions')
  if (isWatched(db)) {
    const isIdle = sql`created_at < ${idleSince} and refreshed_at < ${idleSince}`
    const revivesOlder = sql`exists (select from ${sessions} older where older.user_id = ${sql.ref('sessions.user_id')}
      and (older.created_at, older.id) < (${sql.ref('sessions.created_at')}, ${sql.ref('sessions.id')}) and older.refreshed_at >= ${idleSince})`
    return yield* endWithEvents(db, singlePerUser ? sql`${isIdle} and not ${revivesOlder}` : isIdle)
  }
  const revivesNone = singlePerUser
    ? sql`where not exists (
        select from ${sessions} older where older.user_id = idle.user_id
          and (older.created_at, older.id) < (idle.created_at, idle.id) and older.id not in (select id from idle))`
    : sql``
  for (let after: Position | undefined; ; ) {
    const isNext = after ? sql`and (created_at, id) > (${after.created_at}::timestamptz, ${after.id}::uuid)` : sql``
    const { rows } = await sql<Position & { seen: number }>`
      with scanned as materialized (
        select id, created_at, refreshed_at from ${sessions}
        where created_at < ${idleSince} ${isNext}
        order by created_at, id limit ${BATCH}
      ), idle as (
        select id, user_id, created_at from ${sessions}
        where id = any (array(select id from scanned where refreshed_at < ${idleSince})) and refreshed_at < ${idleSince}
        for update skip locked
      ), gone as (
        delete from ${sessions} where id = any (array(select id from idle ${revivesNone}))
      )
      select id, created_at::text, (select count(*)::integer from scanned) as seen
      from scanned order by scanned.created_at desc, id desc limit 1`.execute(db)
    const [last] = rows
    if (!last || last.seen < BATCH) return
    after = last
    yield
  }
}
