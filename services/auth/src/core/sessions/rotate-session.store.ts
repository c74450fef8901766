import { prepared } from '@services/common/database/prepared-statement'
import { expressionBuilder, type Kysely, sql } from 'kysely'
import type { Aal, AmrEntry, DB } from '../../db/tables.ts'
import { toUser, type User, type UserJson, userJson } from '../users/users.store.ts'
import type { RepeatRule, SessionLimits } from './session-limits.ts'
import { isRepeatable, isReplaced, type Presentation } from './sessions.store.ts'

export interface Rotation extends Presentation {
  /** null: no audit row. */
  auditId: string | null
}

interface RotationTimes {
  now: Date
  /** A token replaced after this moment is accepted once more and gets the same successor. */
  reusableSince: Date
  /** Sessions created, or last refreshed, before these moments have expired; null: no limit. */
  startedAfter: Date | null
  activeAfter: Date | null
  /** The tokens were accepted in a run before, which a hook stopped: a session that went on meanwhile is no reuse. */
  wereAccepted: boolean
}

export interface RotatedSession {
  id: string
  aal: Aal
  amr: AmrEntry[]
  refresh_counter: number
  /** Late repeats of the parent; 0 unless this was one. */
  repeats: number
  /** Rights of an application; null: the session is the account's own. */
  grant: { scopes: string[]; resources: string[] } | null
  user: User
}

/**
 * Refreshes sessions in one statement, the only place that advances them (states: refresh-reuse.ts). A repeated token
 * changes no counter: twenty parallel refreshes, queued at the row lock, get one child. Undefined for a refused token.
 * A batch skips a session that is locked or listed twice, also by undefined: retry it alone, which waits.
 */
export async function rotateSessions(
  db: Kysely<DB>,
  rotations: readonly Rotation[],
  times: RotationTimes,
  { singlePerUser, comparesAddress }: Pick<SessionLimits, 'singlePerUser'> & RepeatRule,
): Promise<(RotatedSession | undefined)[]> {
  const { one, several } = singlePerUser ? rotateNewest : rotateAny
  const rows = await (rotations.length === 1 ? one : several)(db, {
    ...times,
    comparesAddress,
    sessionIds: rotations.map(({ sessionId }) => sessionId),
    counters: rotations.map(({ counter }) => counter),
    userAgents: rotations.map(({ userAgent }) => userAgent),
    ips: rotations.map(({ ip }) => ip),
    oauthClientIds: rotations.map(({ oauthClientId }) => oauthClientId),
    thumbprints: rotations.map(({ thumbprint }) => thumbprint),
    auditIds: rotations.map(({ auditId }) => auditId),
  })
  const rotated = new Map(rows.map(({ place, user, ...session }) => [place, { ...session, user: toUser(user) }]))
  return rotations.map((_, index) => rotated.get(index + 1))
}

interface RotationInput extends RotationTimes, RepeatRule {
  sessionIds: string[]
  counters: number[]
  userAgents: (string | null)[]
  ips: (string | null)[]
  oauthClientIds: (string | null)[]
  thumbprints: (string | null)[]
  auditIds: (string | null)[]
}

type RotatedRow = Omit<RotatedSession, 'user'> & { place: number; user: UserJson }

const rotationQuery = (singlePerUser: boolean, waits: boolean) => (_: Kysely<DB>, input: RotationInput) => {
  const [sessions, users] = [sql.table('sessions'), sql.table('users')]
  const isCurrent = sql`session.refresh_counter = presented.counter`
  const isWithinInterval = sql`session.refreshed_at > ${input.reusableSince}`
  const client = { userAgent: sql`presented.user_agent`, ip: sql`presented.ip` }
  // The lists stand in subqueries: the planner would make a plan for each length otherwise.
  return sql<RotatedRow>`
    with presented as (
      select * from unnest(
        (select ${input.sessionIds}::uuid[]), (select ${input.counters}::bigint[]),
        (select ${input.userAgents}::text[]), (select ${input.ips}::inet[]), (select ${input.auditIds}::uuid[]),
        (select ${input.oauthClientIds}::uuid[]), (select ${input.thumbprints}::text[])
      ) with ordinality presented (session_id, counter, user_agent, ip, audit_id, client_id, thumbprint, place)
    ), held as (
      ${
        waits
          ? sql`select session_id as id from presented`
          : sql`select id from ${sessions} where id in (select session_id from presented) for update skip locked`
      }
    ), rotated as (
      update ${sessions} session set
        refresh_counter = greatest(session.refresh_counter, presented.counter + 1),
        refreshed_at = case when ${isCurrent} then ${input.now} else session.refreshed_at end,
        repeats = case when ${isCurrent} then 0 when ${isWithinInterval} then session.repeats else session.repeats + 1 end,
        user_agent = case when ${isCurrent} then presented.user_agent else session.user_agent end,
        ip = case when ${isCurrent} then presented.ip else session.ip end
      from presented, ${users} owner
      where session.id = presented.session_id and owner.id = session.user_id and session.id in (select id from held)
        and (${isCurrent} or (${input.wereAccepted}::boolean and session.refresh_counter > presented.counter)
          or (session.refresh_counter = presented.counter + 1
          and (${isWithinInterval} or ${isRepeatable('session', client, sql`${input.comparesAddress}`)})))
        and session.oauth_client_id is not distinct from presented.client_id
        and (session.dpop_thumbprint is null or session.dpop_thumbprint = presented.thumbprint)
        and (owner.banned_until is null or owner.banned_until <= ${input.now})
        and (session.not_after is null or session.not_after > ${input.now})
        and (${input.startedAfter}::timestamptz is null or session.created_at > ${input.startedAfter}::timestamptz)
        and (${input.activeAfter}::timestamptz is null or session.refreshed_at > ${input.activeAfter}::timestamptz)
        and not ${isReplaced(singlePerUser, 'session')}
      returning presented.place, presented.audit_id, session.id, session.user_id, session.aal, session.amr,
        session.refresh_counter, session.repeats, presented.ip,
        case when session.oauth_client_id is not null
          then jsonb_build_object('scopes', session.scopes, 'resources', session.resources) end as rights
    ), audited as (
      insert into ${sql.table('audit_log_entries')} (id, payload, created_at, ip_address)
      select rotated.audit_id, jsonb_strip_nulls(jsonb_build_object(
          'actor_id', actor.id, 'actor_via_sso', false, 'actor_username', coalesce(actor.phone, actor.email, ''),
          'actor_name', actor.user_metadata ->> 'full_name', 'log_type', 'token',
          'action', case rotated.repeats when 0 then 'token_refreshed' else 'token_repeated' end,
          'traits', case when rotated.repeats > 0 then jsonb_build_object('session_id', rotated.id) end)),
        ${input.now}::timestamptz, coalesce(host(rotated.ip), '')
      from rotated join ${users} actor on actor.id = rotated.user_id
      where rotated.audit_id is not null
    )
    select rotated.place, rotated.id, rotated.aal, rotated.amr, rotated.refresh_counter, rotated.repeats,
      rotated.rights as "grant", ${userJson(expressionBuilder<DB, 'users'>())}
    from rotated join ${users} on ${sql.ref('users.id')} = rotated.user_id`
}

const rotationBy = (singlePerUser: boolean) => ({
  one: prepared(rotationQuery(singlePerUser, true)),
  several: prepared(rotationQuery(singlePerUser, false)),
})
const rotateAny = rotationBy(false)
const rotateNewest = rotationBy(true)
