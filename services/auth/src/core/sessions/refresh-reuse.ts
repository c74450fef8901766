// Refresh tokens that are not the current one. A session counts its refreshes, and the distance of a token to that
// counter decides (specification, States; design.md 5.2). The statement in rotate-session.store.ts accepts the first
// two rows; the grant asks here about the others. Tests: ../../flows/token/refresh-token-grant.test.ts.
//
// Counter of the token                           | result
// current                                        | the session advances
// one behind, replaced within the reuse interval | the same successor again
// one behind, later, from the client that has    | the same successor again, MAX_REPEATS times, audited: its answer was
//   the successor                                |   lost, or a page could not store it
// further behind, or later from elsewhere        | `reused`, an attack: the session ends
// ahead                                          | `ahead`: the session catches up with a token that we made and
// committed,
//                                                |   because the database lost writes, in a failover or by a restore
//
// A token that was accepted and waits for a hook is never `reused`. It gets the current successor, but none of a
// session that was raised meanwhile. A proof at our pages leaves the counter: an application shares the token.
//
// A client is its user agent and, with a trusted header, its address. A repeat restarts no time, so a thief elsewhere
// has the interval of the refresh and no more.
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { noteChange } from '../../db/watched-users.ts'
import { countReuseDetected } from '../../metrics.ts'
import { type Actor, type AuditDeps, type AuditLog, audit } from '../audit/audit.ts'
import { endTokens } from '../users/end-tokens.ts'
import { lockUser } from '../users/users.store.ts'
import { endReusedSession } from './end-sessions.store.ts'
import { recoverSession } from './refresh-reuse.store.ts'
import type { RefreshToken } from './refresh-token.ts'
import type { SessionLimits } from './session-limits.ts'

export interface ReuseDeps extends AuditDeps {
  db: Kysely<DB>
  config: AuditDeps['config'] & { sessions: SessionLimits }
}

export interface ReuseInterval {
  reuseIntervalSeconds: number
}

/** A token that was replaced after this moment is accepted once more. */
export const reusableSince = (now: Date, { reuseIntervalSeconds }: ReuseInterval): Date =>
  new Date(now.getTime() - reuseIntervalSeconds * 1000)

/**
 * Finds why a token was refused, by the counter that its session has a moment later. `raced`: it would be accepted by
 * now, because another request advanced the session in between, so the refresh is repeated.
 */
export function judgeRefusal(
  presented: number,
  session: { refresh_counter: number; refreshed_at: Date; is_repeatable: boolean },
  since: Date,
): 'ahead' | 'reused' | 'raced' {
  if (presented > session.refresh_counter) return 'ahead'
  if (presented === session.refresh_counter) return 'raced'
  const isParent = presented === session.refresh_counter - 1
  return isParent && (session.refreshed_at > since || session.is_repeatable) ? 'raced' : 'reused'
}

/** Ends the session of a reused token, also for the caller with the other copy. */
export async function endReuse(deps: ReuseDeps, log: AuditLog, actor: Actor, token: RefreshToken): Promise<void> {
  const hasEnded = await deps.db.transaction().execute(async (trx) => {
    await lockUser(trx, actor.id)
    const reused = { userId: actor.id, id: token.sessionId, presented: token.counter }
    if (!(await endReusedSession(trx, deps.config.sessions, reused))) return false
    const about = { session: { id: token.sessionId } }
    await noteChange(trx, { userId: actor.id, event: 'security.refresh_token_reused', about })
    await noteChange(trx, { userId: actor.id, sessionsEnd: 'refresh_token_reused' })
    // Nor may a thief return by a pending change to an address of theirs.
    await endTokens(trx, actor.id, 'changes', deps.now())
    await audit(deps, trx, log, { action: 'token_reuse_detected', actor, traits: { session_id: token.sessionId } })
    return true
  })
  if (hasEnded) countReuseDetected()
}

/** Advances the session to a token ahead of it. A repeated refresh finds the token current, or one behind. */
export async function catchUp(deps: ReuseDeps, log: AuditLog, actor: Actor, token: RefreshToken): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    if (!(await recoverSession(trx, token.sessionId, token.counter, deps.now()))) return
    await audit(deps, trx, log, { action: 'token_recovered', actor, traits: { session_id: token.sessionId } })
  })
}
