import { prepared } from '@services/common/prepared'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { Aal, AmrEntry, DB, Metadata } from '../../db/tables.ts'
import type { AuditEntry } from '../audit/audit.store.ts'
import type { SessionLimits } from './session-limits.ts'

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

/** Moves a session on to a counter that the database has lost; false when it is that far already, or has ended. */
export async function recoverSession(trx: Transaction<DB>, id: string, counter: number, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('sessions')
    .set({ refresh_counter: counter, refreshed_at: now })
    .where('id', '=', id)
    .where('refresh_counter', '<', counter)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Longest wait for the row: a refresh that waited for a lock until its deadline leaves nothing that waits on. */
const RESTART_WITHIN_MS = 500

/** Has the reuse interval of a token that was replaced after `since` begin at `until`. Throws where the session is held. */
export async function restartReuseInterval(
  db: Kysely<DB>,
  { sessionId, counter }: { sessionId: string; counter: number },
  { since, until }: { since: Date; until: Date },
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await sql`set local lock_timeout = ${sql.lit(RESTART_WITHIN_MS)}`.execute(trx)
    await trx
      .updateTable('sessions')
      .set({ refreshed_at: until })
      .where('id', '=', sessionId)
      .where('refresh_counter', '=', counter + 1)
      .where('refreshed_at', '>=', since)
      .execute()
  })
}
