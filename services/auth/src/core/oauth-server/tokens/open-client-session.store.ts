// The one statement that turns an approved request into a session of its application, for codes of browsers and of
// devices alike. Of many uses at once it lets one pass; a use after it finds `given_session_id`. It checks all that the
// request has named, so that an exchange that succeeds reads nothing before.
import { prepared } from '@services/common/database/prepared-statement'
import { expressionBuilder, type Kysely, type RawBuilder, sql } from 'kysely'
import type { Aal, AmrEntry, DB } from '../../../db/tables.ts'
import type { SessionLimits } from '../../sessions/session-limits.ts'
import { isReplaced } from '../../sessions/sessions.store.ts'
import { toUser, type User, type UserJson, userJson } from '../../users/users.store.ts'

/** Kinds of codes: table, column of the hash, time at which the code expires, and what else its request holds. */
const CODES = {
  authorization_code: {
    ...{ table: 'oauth_authorizations', hash: 'code_hash', expiry: 'code_expires_at', nonce: sql`request.nonce` },
    isOfRequest: sql`and request.code_challenge = presented.challenge
      and (presented.redirect_uri is null or presented.redirect_uri = request.redirect_uri)
      and (request.dpop_thumbprint is null or request.dpop_thumbprint = presented.proven_key)`,
  },
  device_code: {
    ...{ table: 'oauth_device_codes', hash: 'device_code_hash', expiry: 'expires_at', nonce: sql`null::text` },
    isOfRequest: sql``,
  },
} as const

export type CodeKind = keyof typeof CODES

/** Proof in `amr` of sessions of applications. */
export const methodOf = (kind: CodeKind) => `oauth_provider/${kind}`

/** A code and what its client presents with it. */
export interface Opening {
  codeHash: Buffer
  clientId: string
  /** Id of the new session. */
  id: string
  userAgent: string | null
  ip: string | null
  /** Key that refresh tokens are bound to; null: none. */
  thumbprint: string | null
  /** Key that the client has proven to have; null: none. */
  provenKey: string | null
  /** Resources of the token, which must all be granted. */
  resources: readonly string[]
  /** Challenge of the presented verifier; for codes of browsers only. */
  challenge: string | null
  /** Address that the client names again; null: none. */
  redirectUri: string | null
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
  /** Start of the session. */
  now: Date
  /** Value of the request for the id_token. */
  nonce: string | null
  user: User
}

type OpenedRow = Omit<OpenedSession, 'authenticatedAt' | 'now' | 'refresh_counter' | 'user'> & {
  place: number
  authenticated_at: Date
  user: UserJson
}

/**
 * Uses up approved codes and starts their sessions, in one statement. Undefined for a code that is used, expired, or of
 * another request, and for a banned user. The session that approved must still be accepted. A single opening waits for
 * the user's row, as sign-ins do, so that a concurrent ban ends it too. Several skip a code or a user that is locked,
 * and a code that is listed twice, also by undefined: retry it alone.
 */
export async function openClientSessions(
  db: Kysely<DB>,
  kind: CodeKind,
  openings: readonly Opening[],
  now: Date,
  { timeboxSeconds, inactivitySeconds, singlePerUser }: SessionLimits,
): Promise<(OpenedSession | undefined)[]> {
  const before = (seconds: number | undefined) =>
    seconds === undefined ? null : new Date(now.getTime() - seconds * 1000)
  const { one, several } = statements[kind][singlePerUser ? 'newest' : 'any']
  const rows = await (openings.length === 1 ? one : several)(db, {
    now,
    method: methodOf(kind),
    timeboxSeconds: timeboxSeconds ?? null,
    startedAfter: before(timeboxSeconds),
    activeAfter: before(inactivitySeconds),
    codeHashes: openings.map(({ codeHash }) => codeHash),
    clientIds: openings.map(({ clientId }) => clientId),
    ids: openings.map(({ id }) => id),
    userAgents: openings.map(({ userAgent }) => userAgent),
    ips: openings.map(({ ip }) => ip),
    thumbprints: openings.map(({ thumbprint }) => thumbprint),
    provenKeys: openings.map(({ provenKey }) => provenKey),
    resources: openings.map(({ resources }) => JSON.stringify(resources)),
    challenges: openings.map(({ challenge }) => challenge),
    redirectUris: openings.map(({ redirectUri }) => redirectUri),
    auditIds: openings.map(({ auditId }) => auditId),
  })
  const opened = new Map(
    rows.map(({ place, user, authenticated_at: authenticatedAt, ...session }) => [
      place,
      { ...session, refresh_counter: 0 as const, authenticatedAt, now, user: toUser(user) },
    ]),
  )
  return openings.map((_, index) => opened.get(index + 1))
}

/** Finds the user of a code, whatever became of it. */
export async function findUserOfCode(db: Kysely<DB>, kind: CodeKind, codeHash: Buffer): Promise<string | null> {
  const { table, hash } = CODES[kind]
  const { rows } = await sql<{ user_id: string | null }>`
    select user_id from ${sql.table(table)} where ${sql.ref(hash)} = ${codeHash}`.execute(db)
  return rows[0]?.user_id ?? null
}

interface Input {
  now: Date
  /** Entry of `amr`. */
  method: string
  /** A new session ends no later than the one that approved it: nothing was proven for it. null: no limit. */
  timeboxSeconds: number | null
  /** An approving session that was created, or last refreshed, before these has expired; null: no limit. */
  startedAfter: Date | null
  activeAfter: Date | null
  codeHashes: Buffer[]
  clientIds: string[]
  ids: string[]
  userAgents: (string | null)[]
  ips: (string | null)[]
  thumbprints: (string | null)[]
  provenKeys: (string | null)[]
  resources: string[]
  challenges: (string | null)[]
  redirectUris: (string | null)[]
  auditIds: (string | null)[]
}

const openingQuery = (kind: CodeKind, singlePerUser: boolean, waits: boolean) => (_: Kysely<DB>, input: Input) => {
  const { table, hash, expiry, nonce, isOfRequest } = CODES[kind]
  const [codes, users, sessions] = [sql.table(table), sql.table('users'), sql.table('sessions')]
  const [codeHash, expiresAt] = [sql.ref(`request.${hash}`), sql.ref(`request.${expiry}`)]
  // A device is another program than the browser: the end of the browser's session is no end of its sign-in.
  const approvedBy = kind === 'device_code' ? sql`null::uuid` : sql`request.session_id`
  // The lists stand in subqueries: the planner would make a plan for each length otherwise.
  return sql<OpenedRow>`
    with presented as (
      select * from unnest(
        (select ${input.codeHashes}::bytea[]), (select ${input.clientIds}::uuid[]), (select ${input.ids}::uuid[]),
        (select ${input.userAgents}::text[]), (select ${input.ips}::inet[]), (select ${input.thumbprints}::text[]),
        (select ${input.provenKeys}::text[]), (select ${input.resources}::jsonb[]), (select ${input.challenges}::text[]),
        (select ${input.redirectUris}::text[]), (select ${input.auditIds}::uuid[])
      ) with ordinality presented (code_hash, client_id, id, user_agent, ip, thumbprint, proven_key, resources, challenge,
        redirect_uri, audit_id, place)
    ), owner as (
      select account.id, ${codeHash} as code_hash from presented
      join ${codes} request on ${codeHash} = presented.code_hash
      join ${users} account on account.id = request.user_id
      where account.deleted_at is null and (account.banned_until is null or account.banned_until <= ${input.now})
      for no key update of account ${waits ? sql`` : sql`skip locked for no key update of request skip locked`}
    ), taken as (
      update ${codes} request set given_session_id = presented.id
      from presented, owner, ${sessions} approver
      where ${codeHash} = presented.code_hash and ${codeHash} = owner.code_hash and request.user_id = owner.id
        and request.client_id = presented.client_id and request.resources @> presented.resources ${isOfRequest}
        and request.status = 'approved' and request.given_session_id is null and ${expiresAt} > ${input.now}
        and approver.id = request.session_id and ${isAccepted(input)} and not ${isReplaced(singlePerUser, 'approver')}
      returning presented.place, presented.id, presented.user_agent, presented.ip, presented.thumbprint,
        presented.audit_id, request.user_id, request.client_id, request.scopes, request.resources, request.aal,
        request.authenticated_at, ${nonce} as nonce, least(approver.not_after, approver.created_at
          + make_interval(secs => ${input.timeboxSeconds}::double precision)) as not_after, approver.initial_aal,
        approver.identity_id, approver.factor_id, approver.trusted_device_id, ${approvedBy} as approved_by,
        jsonb_build_array(jsonb_build_object('method', ${input.method}::text,
          'timestamp', floor(extract(epoch from request.authenticated_at)))) as amr
    ), opened as (
      insert into ${sessions} (id, user_id, oauth_client_id, scopes, resources, dpop_thumbprint, aal, initial_aal, amr,
        identity_id, factor_id, trusted_device_id, approved_by, not_after, refreshed_at, created_at, user_agent, ip)
      select id, user_id, client_id, scopes, resources, thumbprint, aal, initial_aal, amr, identity_id, factor_id,
        trusted_device_id, approved_by, not_after, ${input.now}::timestamptz, ${input.now}::timestamptz, user_agent, ip
      from taken
    ), audited as (
      insert into ${sql.table('audit_log_entries')} (id, payload, created_at, ip_address)
      select taken.audit_id, jsonb_strip_nulls(jsonb_build_object(
          'actor_id', actor.id, 'actor_via_sso', false, 'actor_username', coalesce(actor.phone, actor.email, ''),
          'actor_name', actor.user_metadata ->> 'full_name', 'log_type', 'account', 'action', 'login',
          'user_agent', taken.user_agent,
          'traits', jsonb_build_object('provider_type', 'oauth_server', 'client_id', taken.client_id))),
        ${input.now}::timestamptz, coalesce(host(taken.ip), '')
      from taken join ${users} actor on actor.id = taken.user_id
      where taken.audit_id is not null
    )
    select taken.place, taken.id, taken.scopes, taken.resources, taken.aal, taken.amr, taken.authenticated_at,
      taken.nonce, ${userJson(expressionBuilder<DB, 'users'>())}
    from taken join ${users} on ${sql.ref('users.id')} = taken.user_id`
}

const isAccepted = ({ now, startedAfter, activeAfter }: Input): RawBuilder<unknown> => sql`
  (approver.not_after is null or approver.not_after > ${now})
  and (${startedAfter}::timestamptz is null or approver.created_at > ${startedAfter}::timestamptz)
  and (${activeAfter}::timestamptz is null or approver.refreshed_at > ${activeAfter}::timestamptz)`

const statementsOf = (kind: CodeKind) => {
  const by = (singlePerUser: boolean) => ({
    one: prepared(openingQuery(kind, singlePerUser, true)),
    several: prepared(openingQuery(kind, singlePerUser, false)),
  })
  return { any: by(false), newest: by(true) }
}
const statements = { authorization_code: statementsOf('authorization_code'), device_code: statementsOf('device_code') }
