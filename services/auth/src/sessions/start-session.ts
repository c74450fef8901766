import type { Kysely } from 'kysely'
import type { AuditEntry } from '../audit/audit.store.ts'
import type { AmrEntry, DB } from '../db/tables.ts'
import { apiError } from '../errors.ts'
import type { User } from '../users/users.store.ts'
import { answerSession, type SessionDeps } from './answer-session.ts'
import type { SessionBody } from './session-shape.ts'
import { insertSession } from './sessions.store.ts'

/** What a session remembers of the request that began it. */
export interface Client {
  ip: string | null
  userAgent: string | null
}

export interface SignInProof {
  /** Hash of the password that was right; the user must still have it. */
  verifiedHash?: string
  /** The identity at a provider that was shown. */
  identityId?: string | undefined
}

/**
 * Signs a user in: a new session, its first refresh token and an access token; `entry` is stored with the session. Throws
 * invalid_credentials when the user has gone or the password was changed.
 */
export async function startSession(
  deps: SessionDeps & { newRowId: () => string },
  db: Kysely<DB>,
  user: User,
  method: string,
  client: Client,
  entry: AuditEntry | null = null,
  { verifiedHash, identityId }: SignInProof = {},
): Promise<SessionBody> {
  const now = deps.now()
  const sessionId = deps.newRowId()
  const amr: AmrEntry[] = [{ method, timestamp: Math.floor(now.getTime() / 1000) }]
  const session = { id: sessionId, userId: user.id, amr, ...client, identityId: identityId ?? null, now }
  if (!(await insertSession(db, session, entry, verifiedHash))) throw apiError('invalid_credentials')
  const signedIn = { ...user, last_sign_in_at: now, updated_at: now }
  return answerSession(deps, signedIn, { id: sessionId, aal: 'aal1', amr, refresh_counter: 0 })
}
