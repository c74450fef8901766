import type { Kysely, Transaction } from 'kysely'
import type { Aal, AmrEntry, DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { isBanned } from '../users/is-banned.ts'
import { type LockedAccount, lockAndReadUser, type User } from '../users/users.store.ts'
import { lockSession } from './sessions.store.ts'

export interface Caller {
  user: User
  /** First audience of the token. */
  audience: string
  /** False for a token signed by hand with the secret. */
  hadSession: boolean
  /** True for a call by our own pages: an application may hold the refresh token of the session. */
  isByPages: boolean
  /** Scopes that bind the token of a client; undefined for a token of the account itself. */
  scopes: readonly string[] | undefined
  /** Undefined once the session has ended; the token stays valid until it expires. */
  session: { id: string; aal: Aal; amr: AmrEntry[] } | undefined
}

/** A caller with a live session; only such a caller may change an account. */
export type LiveCaller = Caller & { session: NonNullable<Caller['session']> }

/** A user with a live session, by a token or by the cookie of our pages. */
export type UserSession = Pick<LiveCaller, 'user' | 'session'>

/** `factor_id`: factor that raised it; null for a recovery code. */
export interface LockedSession {
  id: string
  aal: Aal
  amr: AmrEntry[]
  factor_id: string | null
  refresh_counter: number
  /** Application of the session; null: the user's own. */
  oauth_client_id: string | null
}

/**
 * Runs `work` on the caller's user and session, locked and read again. Throws session_not_found if the session has
 * ended, user_banned if the user was banned meanwhile.
 */
export function withLockedCaller<Result>(
  { db, now }: { db: Kysely<DB>; now: () => Date },
  { user, session }: UserSession,
  work: (trx: Transaction<DB>, current: { user: LockedAccount; session: LockedSession }) => Promise<Result>,
): Promise<Result> {
  return db.transaction().execute(async (trx) => {
    const locked = await lockAndReadUser(trx, user.id)
    if (!locked) throw apiError('user_not_found')
    if (isBanned(locked, now())) throw apiError('user_banned')
    const live = await lockSession(trx, session.id)
    if (!live) throw apiError('session_not_found')
    return work(trx, { user: locked, session: { id: session.id, ...live } })
  })
}
