import { prepared } from '@services/common/prepared'
import { type Kysely, sql } from 'kysely'
import type { Aal, AmrEntry, DB, Metadata } from '../db/tables.ts'
import { toUser, type User, userJson } from '../users/users.store.ts'
import type { SessionLimits } from './session-limits.ts'
import { isReplaced } from './sessions.store.ts'

export interface Rotation {
  sessionId: string
  counter: number
  now: Date
  /** A token replaced after this moment may be used once more and gets the same successor. */
  reusableSince: Date
  /** Sessions begun, or last refreshed, before these moments have expired. */
  startedAfter: Date | null
  activeAfter: Date | null
  userAgent: string | null
  ip: string | null
  /** null: no audit row. */
  auditId: string | null
}

export interface RotatedSession {
  id: string
  aal: Aal
  amr: AmrEntry[]
  refresh_counter: number
  user: User
}

/**
 * The refresh, one statement and the only place that advances a session. The presented counter is current: advance. It
 * is one behind and was replaced within the reuse interval: nothing changes, the successor is handed out again (so that
 * twenty parallel refreshes of one token, which queue at the row's lock, get one child). Anything else: no row.
 */
export async function rotateSession(
  db: Kysely<DB>,
  rotation: Rotation,
  { singlePerUser }: Pick<SessionLimits, 'singlePerUser'>,
): Promise<RotatedSession | undefined> {
  const rotate = singlePerUser ? rotateNewest : rotateAny
  const [row] = await rotate(db, rotation)
  if (!row) return undefined
  const { session_id, aal, amr, refresh_counter } = row
  return { id: session_id, aal, amr, refresh_counter, user: toUser(row.user) }
}

const rotationQuery = (singlePerUser: boolean) => (db: Kysely<DB>, rotation: Rotation) => {
  const presented = sql<number>`${rotation.counter}::bigint`
  const isCurrent = sql<boolean>`${sql.ref('sessions.refresh_counter')} = ${presented}`
  return db
    .with('rotated', (qb) =>
      qb
        .updateTable('sessions')
        .from('users')
        .set((eb) => ({
          refresh_counter: sql`${presented} + 1`,
          refreshed_at: eb
            .case()
            .when(isCurrent)
            .then(eb.val(rotation.now))
            .else(eb.ref('sessions.refreshed_at'))
            .end(),
          user_agent: rotation.userAgent,
          ip: rotation.ip,
        }))
        .whereRef('users.id', '=', 'sessions.user_id')
        .where('sessions.id', '=', rotation.sessionId)
        .where((eb) =>
          eb.or([
            isCurrent,
            eb.and([
              eb('sessions.refresh_counter', '=', sql<number>`${presented} + 1`),
              eb('sessions.refreshed_at', '>', rotation.reusableSince),
            ]),
          ]),
        )
        .where((eb) => eb.or([eb('users.banned_until', 'is', null), eb('users.banned_until', '<=', rotation.now)]))
        .where((eb) => eb.or([eb('sessions.not_after', 'is', null), eb('sessions.not_after', '>', rotation.now)]))
        .where(isAfter('sessions.created_at', rotation.startedAfter))
        .where(isAfter('sessions.refreshed_at', rotation.activeAfter))
        .where(sql<boolean>`not ${isReplaced(singlePerUser)}`)
        .returning([
          'sessions.id as session_id',
          'sessions.user_id',
          'sessions.aal',
          'sessions.amr',
          'sessions.refresh_counter',
        ]),
    )
    .with('audited', (qb) =>
      qb
        .insertInto('audit_log_entries')
        .columns(['id', 'payload', 'created_at'])
        .expression((eb) =>
          eb
            .selectFrom('rotated')
            .innerJoin('users', 'users.id', 'rotated.user_id')
            .select([
              sql<string>`${rotation.auditId}::uuid`.as('id'),
              sql<Metadata>`jsonb_strip_nulls(jsonb_build_object(
                'actor_id', ${sql.ref('users.id')}, 'actor_via_sso', false,
                'actor_username', coalesce(${sql.ref('users.phone')}, ${sql.ref('users.email')}, ''),
                'actor_name', ${sql.ref('users.user_metadata')} ->> 'full_name',
                'action', 'token_refreshed', 'log_type', 'token'))`.as('payload'),
              sql<Date>`${rotation.now}::timestamptz`.as('created_at'),
            ])
            .where(sql<boolean>`${rotation.auditId}::uuid is not null`),
        ),
    )
    .selectFrom('rotated')
    .innerJoin('users', 'users.id', 'rotated.user_id')
    .select(['rotated.session_id', 'rotated.aal', 'rotated.amr', 'rotated.refresh_counter'])
    .select(userJson)
}

const rotateAny = prepared(rotationQuery(false))
const rotateNewest = prepared(rotationQuery(true))

/** Without a limit (null) every time passes. */
const isAfter = (column: string, limit: Date | null) =>
  sql<boolean>`(${limit}::timestamptz is null or ${sql.ref(column)} > ${limit}::timestamptz)`
