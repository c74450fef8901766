import type { Kysely, Transaction } from 'kysely'
import type { Aal, DB } from '../../db/tables.ts'
import { noteChange } from '../../db/watched-users.ts'
import { apiError } from '../../errors.ts'
import { type Actor, type AuditDeps, type AuditLog, audit } from '../audit/audit.ts'
import { endTokens } from '../users/end-tokens.ts'
import { lockUser } from '../users/users.store.ts'
import { type AcceptDeps, findAcceptedSession } from './accepted-session.ts'
import { endSessionAndDevices, endSessions } from './end-sessions.store.ts'
import { renewSession } from './raise-session.store.ts'
import type { SessionLimits } from './session-limits.ts'

type EndDeps = AuditDeps & { db: Kysely<DB>; config: { sessions: SessionLimits } }

/**
 * Renews a browser's session by a sign-in there that no client has tokens of: its proofs count, and its session ends.
 * Undefined when the sign-in has to stay: the session has ended or was replaced before, or has a lower level.
 */
export const renewBySignIn = (
  { db, config: { sessions }, now }: AcceptDeps & { db: Kysely<DB> },
  named: { userId: string; sessionId: string; newerId: string },
): Promise<{ aal: Aal } | undefined> =>
  db.transaction().execute(async (trx) => {
    await lockUser(trx, named.userId)
    // The sign-in has replaced it where one session is valid.
    const limits = { ...sessions, singlePerUser: false }
    const isLive = await findAcceptedSession({ config: { sessions: limits }, now }, trx, named)
    return isLive ? renewSession(trx, named, sessions) : undefined
  })

type Owner = Pick<Actor, 'id' | 'email' | 'phone'>

/**
 * Ends one session of a user, changes of address it may have requested, and trusted devices that belong to it. Throws
 * session_not_found (404).
 */
export async function endOneSession(
  deps: EndDeps,
  log: AuditLog,
  actor: Actor,
  owner: Owner,
  sessionId: string,
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    await lockUser(trx, owner.id)
    await noteAdmin(trx, actor, owner)
    const hasEnded = await endSessionAndDevices(trx, deps.config.sessions, owner.id, sessionId)
    if (!hasEnded) throw sessionNotFound()
    await endTokens(trx, owner.id, 'changes', deps.now())
    await audit(deps, trx, log, { action: 'logout', actor, target: owner, traits: { session_id: sessionId } })
  })
}

/** Signs a user out everywhere and cancels pending changes of address; audited when there was a session. */
export async function endAllSessions(deps: EndDeps, log: AuditLog, actor: Actor, owner: Owner): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    await lockUser(trx, owner.id)
    await noteAdmin(trx, actor, owner)
    await endTokens(trx, owner.id, 'changes', deps.now())
    const sessions = await endSessions(trx, owner.id)
    if (sessions > 0) await audit(deps, trx, log, { action: 'logout', actor, target: owner, traits: { sessions } })
  })
}

async function noteAdmin(trx: Transaction<DB>, actor: Actor, owner: Owner): Promise<void> {
  if (actor.id !== owner.id) await noteChange(trx, { userId: owner.id, sessionsEnd: 'ended_by_admin' })
}

export const sessionNotFound = () => apiError('session_not_found', { status: 404, message: 'Session not found' })
