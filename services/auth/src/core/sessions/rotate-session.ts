import { currentDeadline, regardlessOfDeadline } from '@services/common/deadline'
import { together } from '@services/common/together'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type RotatedSession, type Rotation, rotateSessions } from './rotate-session.store.ts'
import type { SessionLimits } from './session-limits.ts'
import { restartReuseInterval } from './sessions.store.ts'

export type RotateSession = (rotation: Rotation) => Promise<RotatedSession | undefined>

interface RotationDeps {
  db: Kysely<DB>
  now: () => Date
  config: { sessions: SessionLimits & { reuseIntervalSeconds: number } }
}

/** Locked at once by one statement. */
const MOST = 32

/**
 * Advances the session of a refresh token, as rotate-session.store.ts says; undefined for a token that is not good any more.
 * Refreshes of one moment are one statement. What that leaves alone, because the session is held by somebody else or was
 * presented twice, is asked for by itself: only it waits.
 */
export function createRotateSession({ db, now, config: { sessions } }: RotationDeps): RotateSession {
  const rotateAll = (rotations: readonly Rotation[]) => {
    const time = now()
    const times = {
      now: time,
      reusableSince: secondsBefore(time, sessions.reuseIntervalSeconds),
      startedAfter: sessions.timeboxSeconds === undefined ? null : secondsBefore(time, sessions.timeboxSeconds),
      activeAfter: sessions.inactivitySeconds === undefined ? null : secondsBefore(time, sessions.inactivitySeconds),
    }
    return rotateSessions(db, rotations, times, sessions)
  }
  const rotate = together<Rotation, RotatedSession | undefined | 'left alone'>(async (rotations) => {
    const rotated = await rotateAll(rotations)
    return rotations.length === 1 ? rotated : rotated.map((session) => session ?? 'left alone')
  }, MOST)
  const advance: RotateSession = async (rotation) => {
    const rotated = await rotate(rotation)
    return rotated === 'left alone' ? (await rotateAll([rotation]))[0] : rotated
  }
  const restarts = new Map<string, Promise<void>>()
  return async (rotation) => {
    const { sessionId } = rotation
    const pending = restarts.get(sessionId)
    if (pending) await pending
    const since = now()
    const rotated = advance(rotation)
    // The database may advance the session although its answer is lost. The caller then comes again with the same token, so the
    // reuse interval begins when the request fails. At a deadline that is before it is answered.
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

const secondsBefore = (now: Date, seconds: number) => new Date(now.getTime() - seconds * 1000)
