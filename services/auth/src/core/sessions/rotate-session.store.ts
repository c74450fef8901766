import { prepared } from '@services/common/prepared'
import { type Kysely, sql } from 'kysely'
import type { Aal, AmrEntry, DB, Metadata } from '../../db/tables.ts'
import { toUser, type User, userJson } from '../users/users.store.ts'
import type { SessionLimits } from './session-limits.ts'
import { isReplaced } from './sessions.store.ts'

/** A refresh token presented, and by whom. */
export interface Rotation {
  sessionId: string
  counter: number
  userAgent: string | null
  ip: string | null
  /** null: no audit row. */
  auditId: string | null
}

export interface RotationTimes {
  now: Date
  /** A token replaced after this moment may be used once more and gets the same successor. */
  reusableSince: Date
  /** Sessions begun, or last refreshed, before these moments have expired. */
  startedAfter: Date | null
  activeAfter: Date | null
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
 * twenty parallel refreshes of one token, which queue at the row's lock, get one child). Anything else: undefined.
 *
 * Of several refreshes none waits for another's lock: a session that is held elsewhere, or presented twice, is left alone, and
 * its refresh is undefined too. Asked for by itself it says how it is.
 */
export async function rotateSessions(
  db: Kysely<DB>,
  rotations: readonly Rotation[],
  times: RotationTimes,
  { singlePerUser }: Pick<SessionLimits, 'singlePerUser'>,
): Promise<(RotatedSession | undefined)[]> {
  const { one, several } = singlePerUser ? rotateNewest : rotateAny
  const rows = await (rotations.length === 1 ? one : several)(db, {
    ...times,
    sessionIds: rotations.map(({ sessionId }) => sessionId),
    counters: rotations.map(({ counter }) => counter),
    userAgents: rotations.map(({ userAgent }) => userAgent),
    ips: rotations.map(({ ip }) => ip),
    auditIds: rotations.map(({ auditId }) => auditId),
  })
  const rotated = new Map(rows.map((row) => [row.place, row]))
  return rotations.map((_, index) => {
    const row = rotated.get(index + 1)
    if (!row) return undefined
    const { session_id, aal, amr, refresh_counter } = row
    return { id: session_id, aal, amr, refresh_counter, user: toUser(row.user) }
  })
}

interface Asked extends RotationTimes {
  sessionIds: string[]
  counters: number[]
  userAgents: (string | null)[]
  ips: (string | null)[]
  auditIds: (string | null)[]
}

interface AskedRow {
  session_id: string
  counter: number
  user_agent: string | null
  ip: string | null
  audit_id: string | null
  place: number
}

const rotationQuery = (singlePerUser: boolean, waits: boolean) => (db: Kysely<DB>, asked: Asked) => {
  const isCurrent = sql<boolean>`${sql.ref('sessions.refresh_counter')} = ${sql.ref('asked.counter')}`
  return db
    .with('asked', (qb) =>
      qb
        // The lists in subqueries: by their lengths the planner would make a plan for each call.
        .selectFrom(
          sql<AskedRow>`unnest((select ${asked.sessionIds}::uuid[]), (select ${asked.counters}::bigint[]),
            (select ${asked.userAgents}::text[]), (select ${asked.ips}::inet[]), (select ${asked.auditIds}::uuid[]))
            with ordinality`.as<'asked'>(sql`asked(session_id, counter, user_agent, ip, audit_id, place)`),
        )
        .selectAll(),
    )
    .with('held', (qb) =>
      waits
        ? qb.selectFrom('asked').select('asked.session_id as id')
        : qb
            .selectFrom('sessions')
            .select('sessions.id')
            .where('sessions.id', 'in', (eb) => eb.selectFrom('asked').select('asked.session_id'))
            .forUpdate()
            .skipLocked(),
    )
    .with('rotated', (qb) =>
      qb
        .updateTable('sessions')
        .from(['asked', 'users'])
        .set((eb) => ({
          refresh_counter: sql`${sql.ref('asked.counter')} + 1`,
          refreshed_at: eb.case().when(isCurrent).then(eb.val(asked.now)).else(eb.ref('sessions.refreshed_at')).end(),
          user_agent: eb.ref('asked.user_agent'),
          ip: eb.ref('asked.ip'),
        }))
        .whereRef('sessions.id', '=', 'asked.session_id')
        .whereRef('users.id', '=', 'sessions.user_id')
        .where('sessions.id', 'in', (eb) => eb.selectFrom('held').select('held.id'))
        .where((eb) =>
          eb.or([
            isCurrent,
            eb.and([
              eb('sessions.refresh_counter', '=', sql<number>`${sql.ref('asked.counter')} + 1`),
              eb('sessions.refreshed_at', '>', asked.reusableSince),
            ]),
          ]),
        )
        .where((eb) => eb.or([eb('users.banned_until', 'is', null), eb('users.banned_until', '<=', asked.now)]))
        .where((eb) => eb.or([eb('sessions.not_after', 'is', null), eb('sessions.not_after', '>', asked.now)]))
        .where(isAfter('sessions.created_at', asked.startedAfter))
        .where(isAfter('sessions.refreshed_at', asked.activeAfter))
        .where(sql<boolean>`not ${isReplaced(singlePerUser)}`)
        .returning([
          'asked.place',
          'asked.audit_id',
          'sessions.id as session_id',
          'sessions.user_id',
          'sessions.aal',
          'sessions.amr',
          'sessions.refresh_counter',
          'sessions.ip',
        ]),
    )
    .with('audited', (qb) =>
      qb
        .insertInto('audit_log_entries')
        .columns(['id', 'payload', 'created_at', 'ip_address'])
        .expression((eb) =>
          eb
            .selectFrom('rotated')
            .innerJoin('users', 'users.id', 'rotated.user_id')
            .select([
              sql<string>`${sql.ref('rotated.audit_id')}`.as('id'),
              sql<Metadata>`jsonb_strip_nulls(jsonb_build_object(
                'actor_id', ${sql.ref('users.id')}, 'actor_via_sso', false,
                'actor_username', coalesce(${sql.ref('users.phone')}, ${sql.ref('users.email')}, ''),
                'actor_name', ${sql.ref('users.user_metadata')} ->> 'full_name',
                'action', 'token_refreshed', 'log_type', 'token'))`.as('payload'),
              sql<Date>`${asked.now}::timestamptz`.as('created_at'),
              sql<string>`coalesce(host(${sql.ref('rotated.ip')}), '')`.as('ip_address'),
            ])
            .where('rotated.audit_id', 'is not', null),
        ),
    )
    .selectFrom('rotated')
    .innerJoin('users', 'users.id', 'rotated.user_id')
    .select(['rotated.place', 'rotated.session_id', 'rotated.aal', 'rotated.amr', 'rotated.refresh_counter'])
    .select(userJson)
}

const rotationBy = (singlePerUser: boolean) => ({
  one: prepared(rotationQuery(singlePerUser, true)),
  several: prepared(rotationQuery(singlePerUser, false)),
})
const rotateAny = rotationBy(false)
const rotateNewest = rotationBy(true)

/** Without a limit (null) every time passes. */
const isAfter = (column: string, limit: Date | null) =>
  sql<boolean>`(${limit}::timestamptz is null or ${sql.ref(column)} > ${limit}::timestamptz)`
