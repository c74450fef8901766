import { prepared } from '@services/common/database/prepared-statement'
import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import { type EventRow, giveUpAt, insertEvents } from '../../db/events.store.ts'
import type { Position } from '../../db/position.ts'
import type { Aal, AmrEntry, DB, FactorJson } from '../../db/tables.ts'
import type { AuditEntry } from '../audit/audit.store.ts'
import type { RepeatRule, SessionLimits } from './session-limits.ts'
import { type PasskeyUse, usingPasskey } from './use-passkey.store.ts'

export interface NewSession {
  id: string
  userId: string
  aal: Aal
  amr: AmrEntry[]
  userAgent: string | null
  ip: string | null
  /** Identity at a provider, or passkey, that started it. */
  identityId: string | null
  /** Device that replaced the second factor; `factor_id` is the factor that it replaced. */
  device: { id: string; factor_id: string } | undefined
  now: Date
}

/** Event of a sign-in, which shows the user as it was read. */
export interface SignInEvent extends Omit<EventRow, 'userId'> {
  /** Changes of the user show here. */
  asRead: { updatedAt: Date; factors: FactorJson[] | null }
}

/** Proof of a sign-in that must still hold. */
export interface HeldProof {
  /** Hash of the verified password; the user must still have it. */
  verifiedHash?: string
  /** Use of a passkey, which is stored with the session. */
  passkey?: PasskeyUse
}

/**
 * Stores a session, the time of the sign-in, the audit entry and the event in one statement. False when the user was
 * deleted or banned, no longer has the proof, or is not the one that the event shows. All wait for the user's row, so a
 * ban or a password change also ends a concurrent sign-in.
 */
export async function insertSession(
  db: Kysely<DB>,
  session: NewSession,
  entry: AuditEntry | null,
  { verifiedHash, passkey }: HeldProof,
  event?: SignInEvent,
): Promise<boolean> {
  const { device, ...columns } = session
  const opened = {
    ...columns,
    factorId: device?.factor_id ?? null,
    deviceId: device?.id ?? null,
    initialAal: device ? ('aal1' as const) : session.aal,
    amr: JSON.stringify(session.amr),
    verifiedHash: verifiedHash ?? null,
    entryId: entry?.id ?? null,
    payload: entry ? JSON.stringify(entry.payload) : null,
    entryAddress: entry?.ipAddress ?? '',
  }
  const told = event && {
    eventId: event.id,
    event: event.event,
    data: event.data,
    updatedAt: event.asRead.updatedAt,
    factors: event.asRead.factors && JSON.stringify(event.asRead.factors),
    giveUpAt: giveUpAt(session.now),
  }
  const used = passkey && { keyId: passkey.id, signCount: passkey.signCount, backedUp: passkey.backedUp }
  const open = used ? (told ? openByKeyAndTell : openByKey) : told ? openAndTell : openSession
  return (await open(db, { ...opened, ...told, ...used } as ToldSession & KeySession)).length > 0
}

type OpenedSession = Omit<NewSession, 'amr' | 'device'> & {
  amr: string
  initialAal: Aal
  factorId: string | null
  deviceId: string | null
  /** null: any password. */
  verifiedHash: string | null
  /** null: no audit row. */
  entryId: string | null
  payload: string | null
  entryAddress: string
}

type ToldSession = OpenedSession &
  Pick<EventRow, 'event' | 'data'> & { eventId: string; updatedAt: Date; factors: string | null; giveUpAt: Date }

type KeySession = OpenedSession & { keyId: string; signCount: number; backedUp: boolean }

/** Inserts the event of the session beside it, for the user of `signed_in`. */
const tell = ({ eventId, event, data, now, giveUpAt }: ToldSession) =>
  sql`, told as (${insertEvents({
    ...{ from: sql`signed_in`, userId: sql`signed_in.id`, id: sql`${eventId}::uuid` },
    ...{ event: sql`${event}::text`, data: sql`${data}::jsonb`, now, giveUpAt },
  })})`

/** Matches the user of the event. A Date has milliseconds, and the column may have more. */
const isAsRead = ({ updatedAt, factors }: ToldSession) => sql`
  and date_trunc('milliseconds', updated_at) = ${updatedAt}::timestamptz
  and factors is not distinct from ${factors}::jsonb`

/** Matches the user who may sign in. */
const isAdmitted = ({ userId, verifiedHash, now }: OpenedSession) => sql`
  id = ${userId} and deleted_at is null and (banned_until is null or banned_until <= ${now})
  and (${verifiedHash}::text is null or password_hash = ${verifiedHash}::text)`

const signIn = ({ now }: OpenedSession) =>
  sql`update ${sql.table('users')} account set last_sign_in_at = ${now}, updated_at = ${now}`

const byUser = (session: OpenedSession, isSame = sql``) =>
  sql`with signed_in as (${signIn(session)} where ${isAdmitted(session)}${isSame} returning id)`

/** Locks the user, then the passkey, as all flows do. */
const byKey = (session: KeySession, isSame = sql``) => sql`
    with owner as (
      select id from ${sql.table('users')} where ${isAdmitted(session)}${isSame} for no key update
    ), used as (${usingPasskey(sql`owner`, session)}), signed_in as (
      ${signIn(session)} from used where account.id = used.user_id returning account.id
    )`

const openSession = prepared((_: Kysely<DB>, session: OpenedSession) => opening(byUser(session), session))
const openByKey = prepared((_: Kysely<DB>, session: KeySession) => opening(byKey(session), session))
const openAndTell = prepared((_: Kysely<DB>, session: ToldSession) =>
  opening(byUser(session, isAsRead(session)), session, tell(session)),
)
const openByKeyAndTell = prepared((_: Kysely<DB>, session: ToldSession & KeySession) =>
  opening(byKey(session, isAsRead(session)), session, tell(session)),
)

const opening = (signedIn: RawBuilder<unknown>, session: OpenedSession, others = sql``) => sql<{ id: string }>`
    ${signedIn}, audited as (
      insert into ${sql.table('audit_log_entries')} (id, payload, created_at, ip_address)
      select ${session.entryId}::uuid, ${session.payload}::jsonb, ${session.now}::timestamptz, ${session.entryAddress}
      from signed_in where ${session.entryId}::uuid is not null
    )${others}
    insert into ${sql.table('sessions')} (id, user_id, aal, initial_aal, amr, factor_id, trusted_device_id, refreshed_at, user_agent, ip, identity_id, created_at)
    select ${session.id}::uuid, signed_in.id, ${session.aal}, ${session.initialAal}, ${session.amr}::jsonb,
      ${session.factorId}::uuid, ${session.deviceId}::uuid, ${session.now}::timestamptz, ${session.userAgent}, ${session.ip}::inet,
      ${session.identityId}::uuid, ${session.now}::timestamptz
    from signed_in
    returning id`

/**
 * Inserts a session with the proofs of another one of the user; undefined when that has ended. It is the newer one
 * (`isReplaced`) but ends no later: nothing was proven for it.
 */
export async function insertCopy(
  trx: Transaction<DB>,
  copy: Pick<NewSession, 'id' | 'userId' | 'userAgent' | 'ip' | 'now'> & { of: string },
  { timeboxSeconds }: Pick<SessionLimits, 'timeboxSeconds'>,
) {
  const { rows } = await sql<{ id: string; aal: Aal; amr: AmrEntry[] }>`
    insert into ${sql.table('sessions')} (id, user_id, aal, initial_aal, amr, factor_id, trusted_device_id, identity_id, not_after,
      refreshed_at, created_at, user_agent, ip)
    select ${copy.id}::uuid, user_id, aal, initial_aal, amr, factor_id, trusted_device_id, identity_id,
      least(not_after, created_at + make_interval(secs => ${timeboxSeconds ?? null}::double precision)),
      ${copy.now}::timestamptz, ${copy.now}::timestamptz, ${copy.userAgent}::text, ${copy.ip}::inet
    from ${sql.table('sessions')} where id = ${copy.of}::uuid and user_id = ${copy.userId}::uuid
    returning id, aal, amr`.execute(trx)
  return rows[0]
}

/**
 * Matches a session replaced by a newer sign-in, of the same application if it belongs to one. Computed, because
 * concurrent sign-ins do not see each other but agree on the order (ids break ties). Omitted where all are valid:
 * planning it cost GET /user a third of its rate.
 */
export const isReplaced = (singlePerUser: boolean, session = 'sessions') =>
  singlePerUser
    ? sql<boolean>`exists (
        select from ${sql.table('sessions')} newer where newer.user_id = ${sql.ref(`${session}.user_id`)}
          and newer.oauth_client_id is not distinct from ${sql.ref(`${session}.oauth_client_id`)}
          and (newer.created_at, newer.id) > (${sql.ref(`${session}.created_at`)}, ${sql.ref(`${session}.id`)}))`
    : sql<boolean>`false`

/** Presented refresh token and the client that presents it. */
export interface Presentation {
  sessionId: string
  counter: number
  /** Application that presents it; null: the account's own. */
  oauthClientId: string | null
  /** Key that the application has proven to have (RFC 9449); null: none. */
  thumbprint: string | null
  userAgent: string | null
  ip: string | null
}

/** Late uses of one token at most: a site that loads a page each minute has well over an hour. */
export const MAX_REPEATS = 100

/**
 * Matches a session whose newest token went to this client, so that its parent may be used late (refresh-reuse.ts).
 * IPv6 by /64, as limits are: a device changes the rest of its address every day.
 */
export const isRepeatable = (
  session: string,
  { userAgent, ip }: { userAgent: RawBuilder<unknown>; ip: RawBuilder<unknown> },
  comparesAddress: RawBuilder<unknown>,
) => {
  const [repeats, agent, address] = ['repeats', 'user_agent', 'ip'].map((name) => sql.ref(`${session}.${name}`))
  return sql<boolean>`(${repeats} < ${sql.lit(MAX_REPEATS)} and ${agent} is not distinct from ${userAgent}
    and (not ${comparesAddress}::boolean
      or coalesce(set_masklen(${address}, case family(${address}) when 6 then 64 else 32 end) >>= ${ip}, false)))`
}

/** Finds the times of sessions, of any users, that decide whether each would be accepted. */
export const findSessionTimes = (db: Kysely<DB>, ids: readonly string[], { singlePerUser }: SessionLimits) =>
  db
    .selectFrom('sessions')
    .select(['id', 'created_at', 'refreshed_at', 'not_after', isReplaced(singlePerUser).as('is_replaced')])
    .where('id', 'in', ids)
    .execute()

const sessionWithUser = (db: Kysely<DB>, id: string, { singlePerUser }: SessionLimits) =>
  db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .select([
      'sessions.user_id',
      'sessions.aal',
      'sessions.amr',
      'sessions.refresh_counter',
      'sessions.oauth_client_id',
    ])
    .select(isReplaced(singlePerUser).as('is_replaced'))
    .select(['sessions.created_at', 'sessions.refreshed_at', 'sessions.not_after'])
    .select(['sessions.oauth_client_id', 'sessions.dpop_thumbprint'])
    .select(['users.banned_until', 'users.role', 'users.email', 'users.phone', 'users.user_metadata'])
    .where('sessions.id', '=', id)

export const findSessionWithUser = (db: Kysely<DB>, id: string, limits: SessionLimits) =>
  sessionWithUser(db, id, limits).executeTakeFirst()

/** Finds the reasons why a rotation was refused. */
export function findRefusedSession(
  db: Kysely<DB>,
  { sessionId, userAgent, ip }: Presentation,
  limits: SessionLimits & RepeatRule,
) {
  const client = { userAgent: sql`${userAgent}::text`, ip: sql`${ip}::inet` }
  return sessionWithUser(db, sessionId, limits)
    .select(isRepeatable('sessions', client, sql`${limits.comparesAddress}`).as('is_repeatable'))
    .executeTakeFirst()
}

/** Lists a user's sessions, newest first, in the order of `isReplaced`. */
export function listSessions(db: Kysely<DB>, userId: string, limit: number, after?: Position) {
  const isAfter = after && sql<boolean>`(created_at, id) < (${after.created_at}::timestamptz, ${after.id}::uuid)`
  return db
    .selectFrom('sessions')
    .select(['id', 'aal', 'created_at', 'refreshed_at', 'not_after', 'user_agent', 'ip'])
    .select(sql<string>`to_json(created_at) #>> '{}'`.as('place'))
    .select((eb) =>
      eb
        .selectFrom('oauth_clients')
        .select(
          sql<{ id: string; name?: string }>`json_strip_nulls(
          json_build_object('id', coalesce(metadata_uri, ${sql.ref('oauth_clients.id')}::text), 'name', client_name))`.as(
            'client',
          ),
        )
        .whereRef('oauth_clients.id', '=', 'sessions.oauth_client_id')
        .as('client'),
    )
    .where('user_id', '=', userId)
    .where(isAfter ?? sql.lit(true))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** Locks a session until the transaction ends; undefined when it has ended. */
export function lockSession(trx: Transaction<DB>, id: string) {
  return trx
    .selectFrom('sessions')
    .select(['aal', 'amr', 'factor_id', 'refresh_counter', 'oauth_client_id'])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
}
