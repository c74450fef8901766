// Sessions: how they start, refresh, gain a second factor and end. A session is one row, live until deleted or past a
// limit (session-limits.ts), and no token is stored. Tests: ../../flows/token, account and mfa.
import { afterCommit } from '@services/common/database/after-commit'
import type { Kysely } from 'kysely'
import type { AmrEntry, DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import type { Origin, PendingAudit } from '../audit/audit.ts'
import { isPending } from '../users/proven-addresses.ts'
import type { User } from '../users/users.store.ts'
import { issueTokens, type SessionBody, type SessionDeps } from './issue-tokens.ts'
import { insertSession } from './sessions.store.ts'

export type Client = Origin

interface SignInProof {
  /** Hash of the verified password; the user must still have it. */
  verifiedHash?: string
  /** Identity at a provider that the sign-in used. */
  identityId?: string | undefined
}

/**
 * Signs a user in: creates a session and its tokens; `audited` is stored with it. Throws invalid_credentials when the
 * user was deleted or the password changed, and email_not_confirmed or phone_not_confirmed for a pending account.
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
  const id = deps.newRowId()
  const amr: AmrEntry[] = [{ method, timestamp: Math.floor(now.getTime() / 1000) }]
  const session = { id, userId: user.id, amr, ...client, identityId: identityId ?? null, now }
  if (!(await insertSession(db, session, audited?.entry ?? null, verifiedHash))) throw apiError('invalid_credentials')
  if (audited) await afterCommit(db, audited.log)
  const signedIn = { ...user, last_sign_in_at: now, updated_at: now }
  return issueTokens(deps, db, signedIn, { id, aal: 'aal1', amr, refresh_counter: 0 })
}
