import { batchLoads } from '@services/common/concurrency/batch-loads'
import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type ReuseInterval, reusableSince } from './refresh-reuse.ts'
import { type RotatedSession, type Rotation, rotateSessions } from './rotate-session.store.ts'
import type { RepeatRule, SessionLimits } from './session-limits.ts'

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
