// The one statement that turns an approved request into a session of its application, for codes of browsers and of
// devices alike. Of many uses at once it lets one pass; a use after it finds `given_session_id`.
import { prepared } from '@services/common/database/prepared-statement'
import { expressionBuilder, type Kysely, type RawBuilder, sql } from 'kysely'
import type { Aal, AmrEntry, DB } from '../../../db/tables.ts'
import type { SessionLimits } from '../../sessions/session-limits.ts'
import { isReplaced } from '../../sessions/sessions.store.ts'
import { toUser, type User, type UserJson, userJson } from '../../users/users.store.ts'

/** Kinds of codes: table, column of the hash and time at which the code expires. */
const CODES = {
  authorization_code: { table: 'oauth_authorizations', hash: 'code_hash', expiry: 'code_expires_at' },
  device_code: { table: 'oauth_device_codes', hash: 'device_code_hash', expiry: 'expires_at' },
} as const

export type CodeKind = keyof typeof CODES

export interface Opening {
  codeHash: Buffer
  clientId: string
  /** Id of the new session. */
  id: string
  /** Entry of `amr`. */
  method: string
  now: Date
  userAgent: string | null
  ip: string | null
  /** Key that refresh tokens are bound to; null: none. */
  thumbprint: string | null
  /** null: no audit row. */
  auditId: string | null
}

export interface OpenedSession {
  id: string
  aal: Aal
  amr: AmrEntry[]
  refresh_counter: 0
  scopes: string[]
  resources: string[]
  authenticatedAt: Date
  user: User
}

type OpenedRow = Pick<OpenedSession, 'aal' | 'scopes' | 'resources'> & {
  amr: AmrEntry[]
  authenticated_at: Date
  user: UserJson
}

/**
 * Uses up an approved code and starts its session, in one statement. Undefined for a code that is used, expired, or of
 * another client, and for a banned user. The session that approved must still be accepted. The statement waits for the
 * user's row, as sign-ins do, so that a concurrent ban ends it too.
 */
export async function openClientSession(
  db: Kysely<DB>,
  kind: CodeKind,
  opening: Opening,
  { timeboxSeconds, inactivitySeconds, singlePerUser }: SessionLimits,
): Promise<OpenedSession | undefined> {
  const before = (seconds: number | undefined) =>
    seconds === undefined ? null : new Date(opening.now.getTime() - seconds * 1000)
  const [row] = await statements[kind][singlePerUser ? 'newest' : 'any'](db, {
    ...opening,
    timeboxSeconds: timeboxSeconds ?? null,
    startedAfter: before(timeboxSeconds),
    activeAfter: before(inactivitySeconds),
  })
  if (!row) return undefined
  const { user, authenticated_at: authenticatedAt, ...session } = row
  return { ...session, id: opening.id, refresh_counter: 0, authenticatedAt, user: toUser(user) }
}

interface Input extends Opening {
  /** The new session ends no later than the one that approved it: nothing was proven for it. null: no limit. */
  timeboxSeconds: number | null
  /** An approving session that was created, or last refreshed, before these has expired; null: no limit. */
  startedAfter: Date | null
  activeAfter: Date | null
}

const openingQuery = (kind: CodeKind, singlePerUser: boolean) => (_: Kysely<DB>, input: Input) => {
  const { table, hash, expiry } = CODES[kind]
  const [codes, users, sessions] = [sql.table(table), sql.table('users'), sql.table('sessions')]
  const isCode = sql`${sql.ref(`request.${hash}`)} = ${input.codeHash}::bytea`
  return sql<OpenedRow>`
    with owner as (
      select account.id from ${users} account join ${codes} request on request.user_id = account.id
      where ${isCode} and account.deleted_at is null
        and (account.banned_until is null or account.banned_until <= ${input.now})
      for no key update of account
    ), taken as (
      update ${codes} request set given_session_id = ${input.id}::uuid
      from owner, ${sessions} approver
      where ${isCode} and request.user_id = owner.id and request.client_id = ${input.clientId}::uuid
        and request.status = 'approved' and request.given_session_id is null
        and ${sql.ref(`request.${expiry}`)} > ${input.now}
        and approver.id = request.session_id and ${isAccepted(input)} and not ${isReplaced(singlePerUser, 'approver')}
      returning request.user_id, request.client_id, request.scopes, request.resources, request.aal,
        request.authenticated_at, least(approver.not_after, approver.created_at
          + make_interval(secs => ${input.timeboxSeconds}::double precision)) as not_after, approver.initial_aal, approver.identity_id, approver.factor_id,
        approver.trusted_device_id, jsonb_build_array(jsonb_build_object('method', ${input.method}::text,
          'timestamp', floor(extract(epoch from request.authenticated_at)))) as amr
    ), opened as (
      insert into ${sessions} (id, user_id, oauth_client_id, scopes, resources, dpop_thumbprint, aal, initial_aal, amr,
        identity_id, factor_id, trusted_device_id, not_after, refreshed_at, created_at, user_agent, ip)
      select ${input.id}::uuid, user_id, client_id, scopes, resources, ${input.thumbprint}::text, aal, initial_aal, amr,
        identity_id, factor_id, trusted_device_id, not_after, ${input.now}::timestamptz, ${input.now}::timestamptz,
        ${input.userAgent}::text, ${input.ip}::inet from taken
    ), audited as (
      insert into ${sql.table('audit_log_entries')} (id, payload, created_at, ip_address)
      select ${input.auditId}::uuid, jsonb_strip_nulls(jsonb_build_object(
          'actor_id', actor.id, 'actor_via_sso', false, 'actor_username', coalesce(actor.phone, actor.email, ''),
          'actor_name', actor.user_metadata ->> 'full_name', 'log_type', 'account', 'action', 'login',
          'user_agent', ${input.userAgent}::text,
          'traits', jsonb_build_object('provider_type', 'oauth_server', 'client_id', taken.client_id))),
        ${input.now}::timestamptz, coalesce(host(${input.ip}::inet), '')
      from taken join ${users} actor on actor.id = taken.user_id
      where ${input.auditId}::uuid is not null
    )
    select taken.scopes, taken.resources, taken.aal, taken.amr, taken.authenticated_at,
      ${userJson(expressionBuilder<DB, 'users'>())}
    from taken join ${users} on ${sql.ref('users.id')} = taken.user_id`
}

const isAccepted = ({ now, startedAfter, activeAfter }: Input): RawBuilder<unknown> => sql`
  (approver.not_after is null or approver.not_after > ${now})
  and (${startedAfter}::timestamptz is null or approver.created_at > ${startedAfter}::timestamptz)
  and (${activeAfter}::timestamptz is null or approver.refreshed_at > ${activeAfter}::timestamptz)`

const statementsOf = (kind: CodeKind) => ({
  any: prepared(openingQuery(kind, false)),
  newest: prepared(openingQuery(kind, true)),
})
const statements = { authorization_code: statementsOf('authorization_code'), device_code: statementsOf('device_code') }
