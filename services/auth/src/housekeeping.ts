import type { Logger } from '@services/common/logger'
import type { Deps } from './deps.ts'
import { deleteExpiredLimits } from './http/rate-limits.store.ts'
import { deleteExpiredSendGaps } from './mail/send-gaps.store.ts'
import { deleteExpiredTokens } from './one-time-tokens/one-time-tokens.store.ts'
import { deleteExpiredSessions } from './sessions/sessions.store.ts'

const EVERY_MS = 600_000

/** Expired rows are kept for a day, so that a late click is told "expired" rather than "unknown". */
const KEEP_MS = 86_400_000

/** Deletes what has expired, every ten minutes; replicas may run it at once, each deletes what the others left. */
export function startHousekeeping(deps: Deps, log: Logger): () => void {
  const timer = setInterval(() => {
    deleteExpired(deps).catch((err) => log.warn({ err }, 'housekeeping failed, will be tried again'))
  }, EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}

export async function deleteExpired({ db, now, config }: Deps): Promise<void> {
  const before = new Date(now().getTime() - KEEP_MS)
  const secondsBefore = (seconds: number | undefined) =>
    seconds === undefined ? null : new Date(before.getTime() - seconds * 1000)
  await deleteExpiredTokens(db, before)
  await deleteExpiredSendGaps(db, before)
  await deleteExpiredLimits(db, before)
  await deleteExpiredSessions(db, {
    now: before,
    startedBefore: secondsBefore(config.sessions.timeboxSeconds),
    inactiveSince: secondsBefore(config.sessions.inactivitySeconds),
  })
}
