import { type AuditLog, logAudit } from '../../core/audit/audit.ts'
import { withHooksIn } from '../../core/hooks/questions.ts'
import { issueTokens, type SessionBody } from '../../core/sessions/issue-tokens.ts'
import { catchUp, endReuse, judgeRefusal, reusableSince } from '../../core/sessions/refresh-reuse.ts'
import { parseRefreshToken } from '../../core/sessions/refresh-token.ts'
import type { RotatedSession } from '../../core/sessions/rotate-session.store.ts'
import { whyEnded } from '../../core/sessions/session-limits.ts'
import { findRefusedSession, type Presentation } from '../../core/sessions/sessions.store.ts'
import type { Client } from '../../core/sessions/start-session.ts'
import { isBanned } from '../../core/users/is-banned.ts'
import type { AmrEntry } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { countRepeat } from '../../metrics.ts'

/** Bound on parallel refreshes that overtake this one; then the caller may retry. */
const MAX_RACES = 5

/** Exchanges a refresh token for its successor; the rule is in core/sessions/refresh-reuse.ts. */
export async function refreshSession(deps: Deps, log: AuditLog, text: string, client: Client): Promise<SessionBody> {
  const token = parseRefreshToken(deps.refreshTokenKey, text)
  if (text === '') throw apiError('validation_failed', { message: 'refresh_token required' })
  if (!token) throw apiError('refresh_token_not_found')
  let accepted: Accepted | undefined
  for (let race = 0; race < MAX_RACES; race++) {
    const auditId = deps.config.auditInDatabase ? deps.newRowId() : null
    const refreshed = await withHooksIn(deps, log, async (asking, trx) => {
      const judgedAt = deps.now()
      const session = await deps.rotateSession({ ...token, ...client, auditId }, trx, accepted?.at)
      if (!session) return undefined
      // Proofs at our pages leave the counter, and the token.
      const isAdvanced = session.refresh_counter > token.counter + 1
      if (accepted && isAdvanced && isRaised(accepted.amr, session.amr)) throw apiError('refresh_token_already_used')
      accepted ??= { at: judgedAt, amr: session.amr }
      return { session, body: await issueTokens(asking, trx ?? deps.db, session.user, session, 'token_refresh') }
    })
    if (refreshed) {
      logRefresh(log, refreshed.session)
      return refreshed.body
    }
    await refuse(deps, log, { ...token, ...client }, accepted !== undefined)
  }
  throw apiError('service_unavailable', { retryAfterSeconds: 1 })
}

/** A run that a hook stopped and that rolled back: the token was good when it was presented, so it is never reused. */
interface Accepted {
  at: Date
  amr: AmrEntry[]
}

/** A token from before a second factor was proven stops working. */
const isRaised = (before: AmrEntry[], after: AmrEntry[]) =>
  after.some(({ method, timestamp }) => !before.some((e) => e.method === method && e.timestamp === timestamp))

function logRefresh(log: AuditLog, { id, repeats, user: actor }: RotatedSession): void {
  if (repeats > 0) countRepeat()
  const repeated = { action: 'token_repeated', actor, traits: { session_id: id } } as const
  logAudit(log, repeats > 0 ? repeated : { action: 'token_refreshed', actor })
}

/**
 * Throws the reason for a refused rotation. Returns when the session changed meanwhile and the rotation can be
 * repeated.
 */
async function refuse(deps: Deps, log: AuditLog, token: Presentation, wasAccepted: boolean): Promise<void> {
  const now = deps.now()
  const session = await findRefusedSession(deps.db, token, deps.config.sessions)
  if (!session) throw apiError('refresh_token_not_found')
  if (isBanned(session, now)) throw apiError('user_banned', { status: 400 })
  const verdict = judgeRefusal(token.counter, session, reusableSince(now, deps.config.sessions))
  // A token ahead of its row comes from a lost refresh of unknown time, so inactivity cannot be judged; the time box
  // can.
  const seen = verdict === 'ahead' ? { ...session, refreshed_at: now } : session
  const end = whyEnded(seen, deps.config.sessions, now)
  if (end === 'inactive') {
    throw apiError('session_expired', { message: 'The session has expired after inactivity, sign in again' })
  }
  if (end === 'replaced') {
    throw apiError('session_expired', { message: 'The session has ended with a newer sign-in, sign in again' })
  }
  if (end) throw apiError('session_expired')
  if (verdict === 'raced') return
  const actor = { ...session, id: session.user_id }
  if (verdict === 'ahead') return catchUp(deps, log, actor, token)
  if (wasAccepted) return
  // Committed although the request fails.
  if (deps.config.sessions.rotation) await endReuse(deps, log, actor, token)
  throw apiError('refresh_token_already_used')
}
