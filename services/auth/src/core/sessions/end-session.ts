import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { noteChange } from '../../db/watched-users.ts'
import { apiError } from '../../errors.ts'
import { type Actor, type AuditDeps, type AuditLog, audit } from '../audit/audit.ts'
import { endTokens } from '../users/end-tokens.ts'
import { lockUser } from '../users/users.store.ts'
import { endSessionAndDevices, endSessions } from './end-sessions.store.ts'
import type { SessionLimits } from './session-limits.ts'

type EndDeps = AuditDeps & { db: Kysely<DB>; config: { sessions: SessionLimits } }

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
