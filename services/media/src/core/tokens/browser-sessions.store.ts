import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Insertable, type Kysely, type Selectable, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type ApiToken, isLive, TOKEN_COLUMNS } from './tokens.store.ts'

/** Sessions of one token; a further one ends the one that was unused for longest. */
export const MAX_SESSIONS = 100

export interface FoundSession {
  hash: Buffer
  lastUsedAt: Date
  token: ApiToken
}

/** Stores a session, and ends those past MAX_SESSIONS, in one statement. */
export async function insertSession(db: Kysely<DB>, session: Insertable<DB['browser_sessions']>): Promise<void> {
  await db
    .with('surplus', (qb) =>
      qb.deleteFrom('browser_sessions').where('hash', 'in', (eb) =>
        eb
          .selectFrom('browser_sessions')
          .select('hash')
          .where('token_id', '=', session.token_id)
          .orderBy('last_used_at', 'desc')
          .offset(MAX_SESSIONS - 1),
      ),
    )
    .insertInto('browser_sessions')
    .values(session)
    .execute()
}

/** Finds sessions with their tokens, those that have not ended. */
export async function findSessions(db: Kysely<DB>, hashes: readonly Buffer[], now: Date): Promise<FoundSession[]> {
  const rows = await db
    .selectFrom('browser_sessions')
    .innerJoin('api_tokens', 'api_tokens.id', 'browser_sessions.token_id')
    .select(TOKEN_COLUMNS.map((column) => `api_tokens.${column}` as const))
    .select(['browser_sessions.hash', 'browser_sessions.last_used_at as session_used_at'])
    .where('browser_sessions.hash', '=', sql<Buffer>`any(${hashes}::bytea[])`)
    .where('browser_sessions.expires_at', '>', now)
    .where(isLive(now))
    .execute()
  return rows.map(({ hash, session_used_at: lastUsedAt, ...token }) => ({ hash, lastUsedAt, token }))
}

/** Extends a session; false if it has ended. */
export async function renewSession(db: Kysely<DB>, hash: Buffer, now: Date, expiresAt: Date): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('browser_sessions')
    .set({ last_used_at: now, expires_at: expiresAt })
    .where('hash', '=', hash)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function endSessions(db: Kysely<DB>, hashes: readonly Buffer[]): Promise<void> {
  if (hashes.length > 0) await db.deleteFrom('browser_sessions').where('hash', 'in', hashes).execute()
}

/** Sessions of a token that have not ended, last used first; MAX_SESSIONS at most. */
export const listSessionsOf = (
  db: Kysely<DB>,
  tokenId: string,
  now: Date,
): Promise<Pick<Selectable<DB['browser_sessions']>, 'client_name' | 'created_at' | 'last_used_at' | 'expires_at'>[]> =>
  db
    .selectFrom('browser_sessions')
    .select(['client_name', 'created_at', 'last_used_at', 'expires_at'])
    .where('token_id', '=', tokenId)
    .where('expires_at', '>', now)
    .orderBy('last_used_at', 'desc')
    .limit(MAX_SESSIONS)
    .execute()

/** Ends all sessions of a token; returns how many there were. */
export async function endSessionsOf(db: Kysely<DB>, tokenId: string): Promise<number> {
  const { numDeletedRows } = await db.deleteFrom('browser_sessions').where('token_id', '=', tokenId).executeTakeFirst()
  return Number(numDeletedRows)
}

/** Ends the sessions of a token that has expired, so that a longer life of it revives none. */
export const endSessionsOfExpired = (db: Kysely<DB>, tokenId: string, now: Date) =>
  db
    .deleteFrom('browser_sessions')
    .where('token_id', 'in', (eb) =>
      eb.selectFrom('api_tokens').select('id').where('id', '=', tokenId).where('expires_at', '<=', now),
    )
    .execute()

/** Ends the sessions of bootstrap tokens. */
export const endSessionsOfBootstrap = (db: Kysely<DB>, exceptHash: Buffer | undefined) =>
  db
    .deleteFrom('browser_sessions')
    .where('token_id', 'in', (eb) =>
      eb
        .selectFrom('api_tokens')
        .select('id')
        .where('is_bootstrap', '=', true)
        .$if(exceptHash !== undefined, (query) => query.where('hash', '!=', exceptHash as Buffer)),
    )
    .execute()

export const deleteExpiredSessions = (db: Kysely<DB>, now: Date) =>
  deleteInBatches(db, 'browser_sessions', { column: 'expires_at', before: now })
