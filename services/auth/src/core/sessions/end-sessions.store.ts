import { BATCH, deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import { deleteSessions } from '../../db/ended-sessions.store.ts'
import { andBehind, type Position } from '../../db/position.ts'
import type { DB } from '../../db/tables.ts'
import { noteChange, wantsEvent } from '../../db/watched-users.ts'
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
          and older.oauth_client_id is not distinct from this.oauth_client_id
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
  const ended = await deleteSessions(trx, sql`user_id = ${userId} and ${ends}`, {
    ended_devices: endingDevices(trx, userId, ofSession(id)),
    // One statement changes a row once: the ended sessions are not lowered before.
    lowered: loweringBegun(trx, userId).where(sql<boolean>`not ${ends}`),
  })
  return ended > 0
}

/** Ends a session of this user; false when there is none. */
export async function endSession(trx: Transaction<DB>, limits: Limits, userId: string, id: string): Promise<boolean> {
  return (await deleteSessions(trx, sql`user_id = ${userId} and ${isSessionOrReplaced(limits, id)}`)) > 0
}

/** Ends all sessions of a user, or all but one, and the trusted devices. Returns the number of sessions. */
export const endSessions = (trx: Transaction<DB>, userId: string, exceptId?: string): Promise<number> =>
  endAllBut(trx, userId, exceptId, EVERY)

/** Ends the other sessions, and the trusted devices but those that this session trusted or began with. */
export const endOtherSessions = (trx: Transaction<DB>, userId: string, sessionId: string): Promise<number> =>
  endAllBut(trx, userId, sessionId, exceptOfSession(sessionId))

const endAllBut = (trx: Transaction<DB>, userId: string, exceptId: string | undefined, devices: Choice) =>
  deleteSessions(trx, sql`user_id = ${userId} and ${isOther(exceptId)}`, {
    ended_devices: endingDevices(trx, userId, devices),
  })

const isOther = (exceptId: string | undefined) => (exceptId ? sql`id <> ${exceptId}` : sql`true`)

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
    sql`exists (select from jsonb_array_elements(amr) entry where entry ->> 'method' = any (${methods}::text[]))`
  const began = isOfAddress
    ? beganBy(ADDRESS_METHODS)
    : sql`(identity_id = ${identity.id} or identity_id is null and ${beganBy(['oauth'])})`
  await deleteSessions(trx, sql`user_id = ${userId} and id <> ${exceptId} and ${began}`)
}

/** Ends the sessions of sign-ins with this identity or passkey; the session `exceptId` stays. */
export async function endSessionsStartedBy(
  trx: Transaction<DB>,
  { userId, identityId, exceptId }: { userId: string; identityId: string; exceptId: string | undefined },
): Promise<void> {
  await deleteSessions(trx, sql`user_id = ${userId} and identity_id = ${identityId} and ${isOther(exceptId)}`)
}

/** Deletes sessions past this limit; both columns are indexed. */
export const deleteEndedSessions = (db: Kysely<DB>, column: 'not_after' | 'created_at', before: Date) =>
  wantsEvent(db, 'session.ended')
    ? endWithEvents(db, { column, before, hasEnded: sql`${sql.ref(column)} < ${before}` })
    : deleteInBatches(db, 'sessions', { column, before })

/** Sessions that one transaction ends with events, each perhaps with a user of its own. */
const WITH_EVENTS_AT_ONCE = 200

interface Ended {
  /** Indexed time, in whose order they are read. */
  column: 'not_after' | 'created_at'
  before: Date
  hasEnded: RawBuilder<unknown>
}

/**
 * Ends sessions with their users locked. The sessions are counted, not the users: one with many delays no other. Those
 * of a user that is locked elsewhere have the next round.
 */
async function* endWithEvents(db: Kysely<DB>, { column, before, hasEnded }: Ended): AsyncGenerator<void, void> {
  const [sessions, time] = [sql.table('sessions'), sql.ref(column)]
  for (let after: { at: string; id: string } | undefined; ; ) {
    const isNext = after ? sql`and (${time}, id) > (${after.at}::timestamptz, ${after.id}::uuid)` : sql``
    const { rows } = await sql<{ id: string; user_id: string; at: string; has_ended: boolean }>`
      select id, user_id, ${time}::text as at, ${hasEnded} as has_ended from ${sessions}
      where ${time} < ${before} ${isNext} order by ${time}, id limit ${WITH_EVENTS_AT_ONCE}`.execute(db)
    const ended = rows.filter((row) => row.has_ended)
    if (ended.length > 0) await db.transaction().execute((trx) => endExpired(trx, ended, hasEnded))
    if (rows.length < WITH_EVENTS_AT_ONCE) return
    after = rows.at(-1)
    yield
  }
}

async function endExpired(
  trx: Transaction<DB>,
  ended: readonly { id: string; user_id: string }[],
  hasEnded: RawBuilder<unknown>,
): Promise<void> {
  const owners = [...new Set(ended.map((session) => session.user_id))]
  const locked = await trx
    .selectFrom('users')
    .select('id')
    .where(sql<boolean>`id = any (${owners}::uuid[])`)
    .orderBy('id')
    .forUpdate()
    .skipLocked()
    .execute()
  const userIds = locked.map(({ id }) => id)
  for (const userId of userIds) await noteChange(trx, { userId, sessionsEnd: 'expired' })
  const ids = ended.map(({ id }) => id)
  // Read anew: a refresh may have come first.
  await deleteSessions(trx, sql`id = any (${ids}::uuid[]) and user_id = any (${userIds}::uuid[]) and ${hasEnded}`)
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
  if (wantsEvent(db, 'session.ended')) {
    const isIdle = sql`refreshed_at < ${idleSince}`
    const revivesOlder = sql`exists (select from ${sessions} older where older.user_id = ${sql.ref('sessions.user_id')}
      and (older.created_at, older.id) < (${sql.ref('sessions.created_at')}, ${sql.ref('sessions.id')}) and older.refreshed_at >= ${idleSince})`
    const hasEnded = singlePerUser ? sql`${isIdle} and not ${revivesOlder}` : isIdle
    return yield* endWithEvents(db, { column: 'created_at', before: idleSince, hasEnded })
  }
  const revivesNone = singlePerUser
    ? sql`where not exists (
        select from ${sessions} older where older.user_id = idle.user_id
          and (older.created_at, older.id) < (idle.created_at, idle.id) and older.id not in (select id from idle))`
    : sql``
  for (let after: Position | undefined; ; ) {
    const { rows } = await sql<Position & { seen: number }>`
      with scanned as materialized (
        select id, created_at, refreshed_at from ${sessions}
        where created_at < ${idleSince} ${andBehind(after)}
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
