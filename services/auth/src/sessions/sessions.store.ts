import { deleteBatch } from '@services/common/database'
import { prepared } from '@services/common/prepared'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { AuditEntry } from '../audit/audit.store.ts'
import type { Aal, AmrEntry, DB, Metadata } from '../db/tables.ts'
import { toUser, userJson } from '../users/users.store.ts'
import type { SessionLimits, SessionTimes } from './session-limits.ts'

export interface NewSession {
  id: string
  userId: string
  amr: AmrEntry[]
  userAgent: string | null
  ip: string | null
  /** The identity at a provider that it began with. */
  identityId: string | null
  now: Date
}

/**
 * Opens a session, notes the sign-in on the user and stores the audit entry, in one statement; false when there is no such
 * user any more. With `verifiedHash` the user must still have it: a password change that commits while a sign-in with the
 * old password is under way ends that sign-in too, because both wait for the user's row.
 */
export async function insertSession(
  db: Kysely<DB>,
  session: NewSession,
  entry: AuditEntry | null,
  verifiedHash?: string,
): Promise<boolean> {
  const inserted = await openSession(db, {
    ...session,
    amr: JSON.stringify(session.amr),
    verifiedHash: verifiedHash ?? null,
    entryId: entry?.id ?? null,
    payload: entry ? JSON.stringify(entry.payload) : null,
    entryAddress: entry?.ipAddress ?? '',
  })
  return inserted.length > 0
}

type OpenedSession = Omit<NewSession, 'amr'> & {
  amr: string
  /** null: whatever the user's password is. */
  verifiedHash: string | null
  /** null: no audit row. */
  entryId: string | null
  payload: string | null
  entryAddress: string
}

const openSession = prepared((db: Kysely<DB>, session: OpenedSession) => {
  const { verifiedHash } = session
  return db
    .with('signed_in', (qb) =>
      qb
        .updateTable('users')
        .set({ last_sign_in_at: session.now, updated_at: session.now })
        .where('id', '=', session.userId)
        .where('deleted_at', 'is', null)
        .where(
          sql<boolean>`(${verifiedHash}::text is null or ${sql.ref('users.password_hash')} = ${verifiedHash}::text)`,
        )
        .returning('id'),
    )
    .with('audited', (qb) =>
      qb
        .insertInto('audit_log_entries')
        .columns(['id', 'payload', 'created_at', 'ip_address'])
        .expression((eb) =>
          eb
            .selectFrom('signed_in')
            .select([
              sql<string>`${session.entryId}::uuid`.as('id'),
              sql<Metadata>`${session.payload}::jsonb`.as('payload'),
              sql<Date>`${session.now}::timestamptz`.as('created_at'),
              sql<string>`${session.entryAddress}::text`.as('ip_address'),
            ])
            .where(sql<boolean>`${session.entryId}::uuid is not null`),
        ),
    )
    .insertInto('sessions')
    .columns(['id', 'user_id', 'amr', 'refreshed_at', 'user_agent', 'ip', 'identity_id', 'created_at'])
    .expression((eb) =>
      eb
        .selectFrom('signed_in')
        .select([
          sql<string>`${session.id}::uuid`.as('id'),
          'signed_in.id as user_id',
          sql<AmrEntry[]>`${session.amr}::jsonb`.as('amr'),
          sql<Date>`${session.now}::timestamptz`.as('refreshed_at'),
          sql<string | null>`${session.userAgent}::text`.as('user_agent'),
          sql<string | null>`${session.ip}::inet`.as('ip'),
          sql<string | null>`${session.identityId}::uuid`.as('identity_id'),
          sql<Date>`${session.now}::timestamptz`.as('created_at'),
        ]),
    )
    .returning('sessions.id')
})

/**
 * Whether a newer sign-in of its user replaced the session in `sessions`, where only the newest counts. Asked and not stored:
 * of sign-ins at once none sees the others, and all of them agree on the order. Between two of one moment ids decide. Left
 * out of the statement where all count: planning it cost GET /user a third of its rate.
 */
export const isReplaced = (singlePerUser: boolean) =>
  singlePerUser
    ? sql<boolean>`exists (
        select from ${sql.table('sessions')} newer where newer.user_id = ${sql.ref('sessions.user_id')}
          and (newer.created_at, newer.id) > (${sql.ref('sessions.created_at')}, ${sql.ref('sessions.id')}))`
    : sql<boolean>`false`

/** For telling a caller why the rotation refused. */
export function findSessionWithUser(
  db: Kysely<DB>,
  id: string,
  { singlePerUser }: Pick<SessionLimits, 'singlePerUser'>,
) {
  return db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .select([
      'sessions.user_id',
      'sessions.aal',
      'sessions.refresh_counter',
      'sessions.refreshed_at',
      'sessions.not_after',
      'sessions.created_at',
      'users.banned_until',
      'users.role',
      'users.email',
      'users.phone',
      'users.user_metadata',
      isReplaced(singlePerUser).as('is_replaced'),
    ])
    .where('sessions.id', '=', id)
    .executeTakeFirst()
}

type EndLimits = Pick<SessionLimits, 'singlePerUser'>

/**
 * The session, and where only the newest counts those it replaced: without it they would be the newest again, although their
 * users were told that they have ended.
 */
const isSessionOrReplaced = ({ singlePerUser }: EndLimits, id: string) =>
  singlePerUser
    ? sql<boolean>`(user_id, created_at, id) in (
        select older.user_id, older.created_at, older.id
        from ${sql.table('sessions')} this join ${sql.table('sessions')} older on older.user_id = this.user_id
          and (older.created_at, older.id) <= (this.created_at, this.id)
        where this.id = ${id})`
    : sql<boolean>`id = ${id}`

/** Ends a session whose token was reused; the counter makes sure that it is still the session that was judged. */
export async function endReusedSession(
  trx: Transaction<DB>,
  limits: EndLimits,
  id: string,
  presentedCounter: number,
): Promise<boolean> {
  const reused = trx
    .selectFrom('sessions')
    .select('id')
    .where('id', '=', id)
    .where('refresh_counter', '>', presentedCounter)
    .forUpdate()
  if (!(await reused.executeTakeFirst())) return false
  await trx.deleteFrom('sessions').where(isSessionOrReplaced(limits, id)).execute()
  return true
}

/** Ends a session if it is this user's; false when there is none. */
export async function endSession(
  trx: Transaction<DB>,
  limits: EndLimits,
  userId: string,
  sessionId: string,
): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('sessions')
    .where('user_id', '=', userId)
    .where(isSessionOrReplaced(limits, sessionId))
    .executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}

/** Ends sessions of a user: all, or all but one. Returns how many it were. */
export async function endSessions(
  trx: Transaction<DB>,
  userId: string,
  scope: 'global' | 'others',
  sessionId: string,
): Promise<number> {
  let query = trx.deleteFrom('sessions').where('user_id', '=', userId)
  if (scope === 'others') query = query.where('id', '!=', sessionId)
  const { numDeletedRows } = await query.executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/** Methods of sessions begun by a code or link to an address. */
const ADDRESS_METHODS = [
  ...['otp', 'magiclink', 'recovery', 'email/signup', 'signup', 'invite', 'sms'],
  ...['email_change', 'phone_change'],
]

/**
 * Ends the sessions that began, or could have begun, by an identity: of a provider's those that name it and those of before they
 * did, of an address those begun by a code or link. The session that asks stays.
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

/** A user's sessions, newest first, in the order of `isReplaced`. */
export function listSessions(db: Kysely<DB>, userId: string, limit: number) {
  return db
    .selectFrom('sessions')
    .select(['id', 'aal', 'created_at', 'refreshed_at', 'not_after', 'user_agent', 'ip'])
    .where('user_id', '=', userId)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** Holds a live session until the transaction ends; undefined when it has ended. */
export function lockSession(trx: Transaction<DB>, id: string): Promise<{ aal: Aal } | undefined> {
  return trx.selectFrom('sessions').select('aal').where('id', '=', id).forUpdate().executeTakeFirst()
}

interface FoundSession extends SessionTimes {
  id: string
  aal: Aal
  amr: AmrEntry[]
}

/** Whom a token names. */
export interface NamedCaller {
  userId: string
  sessionId: string | undefined
}

type FoundCaller = Awaited<ReturnType<typeof findCaller>>
export type FindCaller = (caller: NamedCaller) => Promise<FoundCaller>

/** The caller of a request: the user and, while its row is there, the token's session. */
export async function findCaller(db: Kysely<DB>, caller: NamedCaller, limits: Pick<SessionLimits, 'singlePerUser'>) {
  return (await findCallers(db, [caller], limits))[0]
}

/** Those of several requests, in their order, by one statement; undefined where there is no such user. */
export async function findCallers(
  db: Kysely<DB>,
  callers: readonly NamedCaller[],
  { singlePerUser }: Pick<SessionLimits, 'singlePerUser'>,
) {
  const select = singlePerUser ? selectCallersOfNewest : selectCallers
  const rows = await select(db, {
    userIds: callers.map(({ userId }) => userId),
    sessionIds: callers.map(({ sessionId }) => sessionId ?? null),
  })
  const found = new Map(rows.map((row) => [row.place, row]))
  return callers.map((_, index) => {
    const row = found.get(index + 1)
    if (!row) return undefined
    const { session_id: id, aal, amr, session_created_at: created_at, refreshed_at, not_after, is_replaced } = row
    const session = id && { id, aal, amr, created_at, refreshed_at, not_after, is_replaced }
    return { user: toUser(row.user), session: session ? (session as FoundSession) : undefined }
  })
}

const callersQuery =
  (singlePerUser: boolean) => (db: Kysely<DB>, asked: { userIds: string[]; sessionIds: (string | null)[] }) =>
    db
      .selectFrom(
        sql<{ user_id: string; session_id: string | null; place: number }>`
          unnest((select ${asked.userIds}::uuid[]), (select ${asked.sessionIds}::uuid[])) with ordinality`.as<'asked'>(
          sql`asked(user_id, session_id, place)`,
        ),
      )
      .innerJoin('users', 'users.id', 'asked.user_id')
      .leftJoin('sessions', (join) =>
        join.onRef('sessions.user_id', '=', 'users.id').onRef('sessions.id', '=', 'asked.session_id'),
      )
      .select([
        'asked.place',
        'sessions.id as session_id',
        'sessions.aal',
        'sessions.amr',
        'sessions.created_at as session_created_at',
        'sessions.refreshed_at',
        'sessions.not_after',
        isReplaced(singlePerUser).as('is_replaced'),
      ])
      .select(userJson)

const selectCallers = prepared(callersQuery(false))
const selectCallersOfNewest = prepared(callersQuery(true))

/** Housekeeping: sessions past their absolute end or their time box; both are indexed. */
export function deleteExpiredSessions(
  db: Kysely<DB>,
  limits: { now: Date; startedBefore: Date | null },
  limit: number,
): Promise<number> {
  const { now, startedBefore } = limits
  const conditions = [sql`not_after < ${now}`, ...(startedBefore ? [sql`created_at < ${startedBefore}`] : [])]
  return deleteBatch(db, 'sessions', sql.join(conditions, sql` or `), limit)
}

/** A place in the order of creation; the time as PostgreSQL writes it, to the microsecond. */
export interface SessionPlace {
  created_at: string
  id: string
}

/**
 * Housekeeping: of the next `limit` sessions by age, those that were not refreshed since. Walked by age, because an index on
 * the time of the last refresh would be written by every refresh. Resolves to where to go on; undefined at the end.
 */
export async function deleteInactiveSessions(
  db: Kysely<DB>,
  inactiveSince: Date,
  after: SessionPlace | undefined,
  limit: number,
): Promise<SessionPlace | undefined> {
  const { rows } = await sql<SessionPlace & { seen: number }>`
    with looked_at as materialized (
      select id, created_at, refreshed_at from ${sql.table('sessions')}
      where created_at < ${inactiveSince} ${after ? sql`and (created_at, id) > (${after.created_at}::timestamptz, ${after.id}::uuid)` : sql``}
      order by created_at, id limit ${limit}
    ), gone as (
      delete from ${sql.table('sessions')} where id = any (array(
        select id from ${sql.table('sessions')}
        where id = any (array(select id from looked_at where refreshed_at < ${inactiveSince}))
          and refreshed_at < ${inactiveSince} for update skip locked))
    )
    select id, created_at::text, (select count(*) from looked_at) as seen
    from looked_at order by looked_at.created_at desc, id desc limit 1`.execute(db)
  const [last] = rows
  return last && last.seen === limit ? last : undefined
}
