// Requests of a session end with it, whichever way it ended. They are changes of address, nonces, PKCE codes of a
// change, factors being enrolled, challenges, and identities being linked. Each remembers its session, and is completed
// only while that session would be accepted. So a thief who was signed out does not come back by one.
// Tests: test/stolen-session.test.ts, test/begun-by-session.test.ts.
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { findCaller } from './find-callers.store.ts'
import { type SessionLimits, whyEnded } from './session-limits.ts'

export interface AcceptDeps {
  config: { sessions: SessionLimits }
  now: () => Date
}

/** Returns the user's session if it would be accepted now: it exists, is within its limits and was not replaced. */
export async function findAcceptedSession(
  { config: { sessions }, now }: AcceptDeps,
  db: Kysely<DB>,
  named: { userId: string; sessionId: string },
) {
  const session = (await findCaller(db, named, sessions))?.session
  return session && !whyEnded(session, sessions, now()) ? session : undefined
}

/** Reports whether something may still be completed; `sessionId` is null where no session began it. */
export async function isRequesterAccepted(
  deps: AcceptDeps,
  db: Kysely<DB>,
  { userId, sessionId }: { userId: string; sessionId: string | null },
): Promise<boolean> {
  return sessionId === null || (await findAcceptedSession(deps, db, { userId, sessionId })) !== undefined
}
