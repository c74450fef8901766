/** What the end of a session depends on. */
export interface SessionTimes {
  created_at: Date
  refreshed_at: Date
  not_after: Date | null
  /** By a newer sign-in, where only the newest session counts. */
  is_replaced: boolean
}

export interface SessionLimits {
  timeboxSeconds: number | undefined
  inactivitySeconds: number | undefined
  /** Only the newest session of a user counts. */
  singlePerUser: boolean
}

/**
 * Why a session has ended by its limits, if it has: too old, too long not refreshed, or not the newest any more
 * (contract/auth-core.md 10.2).
 */
export function whyEnded(
  session: SessionTimes,
  limits: SessionLimits,
  now: Date,
): 'expired' | 'inactive' | 'replaced' | undefined {
  if (session.not_after && session.not_after <= now) return 'expired'
  if (isPast(session.created_at, limits.timeboxSeconds, now)) return 'expired'
  if (isPast(session.refreshed_at, limits.inactivitySeconds, now)) return 'inactive'
  if (session.is_replaced) return 'replaced'
  return undefined
}

const isPast = (since: Date, seconds: number | undefined, now: Date) =>
  seconds !== undefined && since.getTime() + seconds * 1000 <= now.getTime()
