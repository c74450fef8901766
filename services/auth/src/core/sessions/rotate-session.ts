import { batchLoads } from '@services/common/concurrency/batch-loads'
import { currentDeadline, regardlessOfDeadline } from '@services/common/request-deadline'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type RotatedSession, type Rotation, rotateSessions } from './rotate-session.store.ts'
import type { SessionLimits } from './session-limits.ts'
import { restartReuseInterval } from './sessions.store.ts'

/**
 * Advances the session of a refresh token, or returns undefined. A session counts its refreshes, and the distance of a
 * token to that counter decides (specification, States; design.md 5.2):
 *
 * | counter of the token | result |
 * | --- | --- |
 * | current | the session advances |
 * | one behind, replaced within the reuse interval | the same successor again |
 * | further behind, or later | reuse, an attack: `judgeRefusal` says `reused` |
 * | ahead | the database lost writes, in a failover or by a restore: the token was made by us and committed |
 */
export type RotateSession = (rotation: Rotation) => Promise<RotatedSession | undefined>

/** Finds why a token was refused by the counter that its session has a moment later. */
export function judgeRefusal(presented: number, current: number): 'ahead' | 'reused' | 'raced' {
  if (presented > current) return 'ahead'
  // Refused, yet current by now: the session advanced in between, so the refresh is repeated.
  return presented === current ? 'raced' : 'reused'
}

interface RotationDeps {
  db: Kysely<DB>
  now: () => Date
  config: { sessions: SessionLimits & { reuseIntervalSeconds: number } }
}

/** Most sessions that one statement locks. */
const MAX_TOGETHER = 32

/** Runs concurrent refreshes in one statement; those it skips (session locked or presented twice) run again alone. */
export function createRotateSession(deps: RotationDeps): RotateSession {
  const { sessions } = deps.config
  const rotateAll = (rotations: readonly Rotation[]) => {
    const now = deps.now()
    const before = (seconds: number) => new Date(now.getTime() - seconds * 1000)
    const times = {
      now,
      reusableSince: before(sessions.reuseIntervalSeconds),
      startedAfter: sessions.timeboxSeconds === undefined ? null : before(sessions.timeboxSeconds),
      activeAfter: sessions.inactivitySeconds === undefined ? null : before(sessions.inactivitySeconds),
    }
    return rotateSessions(deps.db, rotations, times, sessions)
  }
  const rotate = batchLoads<Rotation, RotatedSession | undefined | 'skipped'>(async (rotations) => {
    const rotated = await rotateAll(rotations)
    return rotations.length === 1 ? rotated : rotated.map((session) => session ?? 'skipped')
  }, MAX_TOGETHER)
  return restartingReuseInterval(deps, async (rotation) => {
    const rotated = await rotate(rotation)
    return rotated === 'skipped' ? (await rotateAll([rotation]))[0] : rotated
  })
}

/**
 * Restarts the reuse interval when a request fails, before its answer: the database may advance the session although
 * the answer is lost, and the caller retries with the same token. The next refresh waits for the restart.
 */
function restartingReuseInterval({ db, now }: Pick<RotationDeps, 'db' | 'now'>, rotate: RotateSession): RotateSession {
  const restarts = new Map<string, Promise<void>>()
  return async (rotation) => {
    const { sessionId } = rotation
    const pending = restarts.get(sessionId)
    if (pending) await pending
    const since = now()
    const rotated = rotate(rotation)
    const restart = () => regardlessOfDeadline(() => restartReuseInterval(db, rotation, { since, until: now() }))
    const beginRestart = () => {
      deadline?.running.delete(beginRestart)
      const restarted = rotated.then(restart, restart).catch(() => {})
      restarts.set(sessionId, restarted)
      restarted.finally(() => restarts.get(sessionId) === restarted && restarts.delete(sessionId))
    }
    const deadline = currentDeadline()
    deadline?.running.add(beginRestart)
    try {
      return await rotated
    } catch (error) {
      if (!deadline?.hasExpired) beginRestart()
      throw error
    } finally {
      deadline?.running.delete(beginRestart)
    }
  }
}
