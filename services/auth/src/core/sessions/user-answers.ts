// Users as endpoints and commands answer them. A pending change of address shows only while the session that requested
// it would be accepted, because its message confirms nothing afterwards (accepted-session.ts). Its row stays until
// housekeeping deletes it. Tests: ../../../test/stolen-session.test.ts.
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type ShownUser, toRegisteredBody, toUserBody, type UserBody } from '../users/user-shape.ts'
import type { User, UserJson } from '../users/users.store.ts'
import type { AcceptDeps } from './accepted-session.ts'
import { whyEnded } from './session-limits.ts'
import { findSessionTimes } from './sessions.store.ts'

/** Returns the user's own answer; `sessionId` names the caller's session if it was accepted. */
export async function ownBody(
  deps: AcceptDeps,
  db: Kysely<DB>,
  user: User,
  sessionId: string | undefined,
): Promise<UserBody> {
  const [shown] = await withLiveChanges(deps, db, [user], sessionId)
  return toUserBody(shown as ShownUser)
}

/** Returns the answers to admins and to a sign-up, with unproven addresses. */
export async function registeredBodies(
  deps: AcceptDeps,
  db: Kysely<DB>,
  users: readonly (User | UserJson)[],
): Promise<UserBody[]> {
  return (await withLiveChanges(deps, db, users)).map(toRegisteredBody)
}

export async function registeredBody(deps: AcceptDeps, db: Kysely<DB>, user: User): Promise<UserBody> {
  const [body] = await registeredBodies(deps, db, [user])
  return body as UserBody
}

/** Removes changes whose session has ended. Asks the database only about sessions other than the caller's. */
async function withLiveChanges<Read extends User | UserJson>(
  { config: { sessions: limits }, now }: AcceptDeps,
  db: Kysely<DB>,
  users: readonly Read[],
  sessionId?: string,
): Promise<ShownUser<Read>[]> {
  const requesters = users
    .flatMap((user) => [user.email_change_session_id, user.phone_change_session_id])
    .filter((id) => id !== null && id !== sessionId)
  if (requesters.length === 0) return users as ShownUser<Read>[]
  const found = await findSessionTimes(db, requesters as string[], limits)
  const live = new Set(found.filter((session) => !whyEnded(session, limits, now())).map(({ id }) => id))
  const hasEnded = (id: string | null) => id !== null && id !== sessionId && !live.has(id)
  return users.map((user) => ({
    ...user,
    ...(hasEnded(user.email_change_session_id) && { email_change: null, email_change_sent_at: null }),
    ...(hasEnded(user.phone_change_session_id) && { phone_change: null, phone_change_sent_at: null }),
  })) as ShownUser<Read>[]
}
