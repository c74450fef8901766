import type { KeyObject } from 'node:crypto'
import { batchLoads } from '@services/common/concurrency/batch-loads'
import type { Kysely, Transaction } from 'kysely'
import type { AmrEntry, DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { countRepeat } from '../../metrics.ts'
import { oauthError } from '../../oauth-errors.ts'
import { type AuditLog, logAudit } from '../audit/audit.ts'
import { type Asking, type QuestionDeps, withHooksIn } from '../hooks/questions.ts'
import { isBanned } from '../users/is-banned.ts'
import { catchUp, endReuse, judgeRefusal, type ReuseDeps, type ReuseInterval, reusableSince } from './refresh-reuse.ts'
import { parseRefreshToken } from './refresh-token.ts'
import { type RotatedSession, type Rotation, rotateSessions } from './rotate-session.store.ts'
import { type RepeatRule, type SessionLimits, whyEnded } from './session-limits.ts'
import { findRefusedSession, type Presentation } from './sessions.store.ts'

/** Advances the session of a refresh token, or returns undefined: see refresh-reuse.ts. */
export type RotateSession = (
  rotation: Rotation,
  trx?: Transaction<DB>,
  /** Time at which this request's token was accepted in a run before, and is judged again. */
  acceptedAt?: Date,
) => Promise<RotatedSession | undefined>

interface RotationDeps {
  db: Kysely<DB>
  now: () => Date
  config: { sessions: SessionLimits & ReuseInterval & RepeatRule }
}

/** Most sessions that one statement locks. */
const MAX_TOGETHER = 32

/**
 * Runs concurrent refreshes in one statement; those it skips (session locked or presented twice) run again alone. One
 * in a transaction of its caller always runs alone.
 */
export function createRotateSession(deps: RotationDeps): RotateSession {
  const { sessions } = deps.config
  const rotateAll = (rotations: readonly Rotation[], db: Kysely<DB> = deps.db, acceptedAt?: Date) => {
    const now = deps.now()
    const judgedAt = acceptedAt ?? now
    const before = (seconds: number) => new Date(judgedAt.getTime() - seconds * 1000)
    const times = {
      now,
      reusableSince: reusableSince(judgedAt, sessions),
      startedAfter: sessions.timeboxSeconds === undefined ? null : before(sessions.timeboxSeconds),
      activeAfter: sessions.inactivitySeconds === undefined ? null : before(sessions.inactivitySeconds),
      wereAccepted: acceptedAt !== undefined,
    }
    return rotateSessions(db, rotations, times, sessions)
  }
  const rotate = batchLoads<Rotation, RotatedSession | undefined | 'skipped'>(async (rotations) => {
    const rotated = await rotateAll(rotations)
    return rotations.length === 1 ? rotated : rotated.map((session) => session ?? 'skipped')
  }, MAX_TOGETHER)
  return async (rotation, trx, acceptedAt) => {
    if (trx) return (await rotateAll([rotation], trx, acceptedAt))[0]
    const rotated = await rotate(rotation)
    return rotated === 'skipped' ? (await rotateAll([rotation]))[0] : rotated
  }
}

export interface RefreshDeps extends QuestionDeps, ReuseDeps {
  refreshTokenKey: KeyObject
  rotateSession: RotateSession
  config: ReuseDeps['config'] & RotationDeps['config'] & { sessions: { rotation: boolean } }
}

/** Bound on parallel refreshes that overtake this one; then the caller may retry. */
const MAX_RACES = 5

type Presented = Omit<Presentation, 'sessionId' | 'counter'> & { text: string }

/** Exchanges a refresh token of the account's own sessions or of an application; `issue` makes the answer. */
export async function refreshAs<Deps extends RefreshDeps, Body>(
  deps: Deps,
  log: AuditLog,
  { text, ...presenter }: Presented,
  issue: (asking: Asking<Deps>, db: Kysely<DB>, session: RotatedSession) => Promise<Body>,
): Promise<Body> {
  const token = parseRefreshToken(deps.refreshTokenKey, text)
  if (text === '') throw apiError('validation_failed', { message: 'refresh_token required' })
  if (!token) throw apiError('refresh_token_not_found')
  const presentation = { ...token, ...presenter }
  let accepted: Accepted | undefined
  for (let race = 0; race < MAX_RACES; race++) {
    const auditId = deps.config.auditInDatabase ? deps.newRowId() : null
    const refreshed = await withHooksIn(deps, log, async (asking, trx) => {
      const judgedAt = deps.now()
      const session = await deps.rotateSession({ ...presentation, auditId }, trx, accepted?.at)
      if (!session) return undefined
      // Proofs at our pages leave the counter, and the token.
      const isAdvanced = session.refresh_counter > token.counter + 1
      if (accepted && isAdvanced && isRaised(accepted.amr, session.amr)) throw apiError('refresh_token_already_used')
      accepted ??= { at: judgedAt, amr: session.amr }
      return { session, body: await issue(asking, trx ?? deps.db, session) }
    })
    if (refreshed) {
      logRefresh(log, refreshed.session)
      return refreshed.body
    }
    await refuse(deps, log, presentation, accepted !== undefined)
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
async function refuse(deps: RefreshDeps, log: AuditLog, token: Presentation, wasAccepted: boolean): Promise<void> {
  const now = deps.now()
  const session = await findRefusedSession(deps.db, token, deps.config.sessions)
  if (!session) throw apiError('refresh_token_not_found')
  requireSameClient(session, token)
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

type Bound = { oauth_client_id: string | null; dpop_thumbprint: string | null }

/** Refuses a token that another client presents, before a reuse is noticed. Texts: contract/auth-oauth-server.md 10. */
function requireSameClient({ oauth_client_id: own, dpop_thumbprint: key }: Bound, presented: Presentation): void {
  const { oauthClientId, thumbprint } = presented
  if (own !== oauthClientId) throw oauthError('invalid_client', { status: 400, message: mismatch(own, oauthClientId) })
  if (key !== null && key !== thumbprint) {
    throw oauthError('invalid_grant', { message: 'The refresh token is bound to another DPoP key' })
  }
}

function mismatch(own: string | null, presented: string | null): string {
  if (own === null) return 'Client authentication not allowed for non-OAuth session'
  if (presented === null) return 'Client authentication required for OAuth session'
  return "Client does not match the session's OAuth client"
}
