import { afterCommit } from '@services/common/after-commit'
import type { Kysely } from 'kysely'
import type { AmrEntry, DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import type { PendingAudit } from '../audit/audit.ts'
import { isPending } from '../users/proven-addresses.ts'
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
 * Signs a user in: a new session, its first refresh token and an access token; `audited` is stored with the session. Throws
 * invalid_credentials when the user has gone or the password was changed, and email_not_confirmed or phone_not_confirmed for an
 * account whose address waits for its proof, whatever the flow.
 */
export async function startSession(
  deps: SessionDeps & { newRowId: () => string },
  db: Kysely<DB>,
  user: User,
  method: string,
  client: Client,
  audited: PendingAudit | null = null,
  { verifiedHash, identityId }: SignInProof = {},
): Promise<SessionBody> {
  if (isPending(user)) throw apiError(user.email ? 'email_not_confirmed' : 'phone_not_confirmed')
  const now = deps.now()
  const sessionId = deps.newRowId()
  const amr: AmrEntry[] = [{ method, timestamp: Math.floor(now.getTime() / 1000) }]
  const session = { id: sessionId, userId: user.id, amr, ...client, identityId: identityId ?? null, now }
  if (!(await insertSession(db, session, audited?.entry ?? null, verifiedHash))) throw apiError('invalid_credentials')
  if (audited) await afterCommit(db, audited.log)
  const signedIn = { ...user, last_sign_in_at: now, updated_at: now }
  return answerSession(deps, signedIn, { id: sessionId, aal: 'aal1', amr, refresh_counter: 0 })
}
