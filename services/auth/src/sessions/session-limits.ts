/** What the end of a session depends on. */
export interface SessionTimes {
  created_at: Date
  refreshed_at: Date
  not_after: Date | null
}

export interface SessionLimits {
  timeboxSeconds: number | undefined
  inactivitySeconds: number | undefined
}

/** Why a session has ended by its limits, if it has: too old, or too long not refreshed (contract/auth-core.md 10.2). */
export function whyEnded(session: SessionTimes, limits: SessionLimits, now: Date): 'expired' | 'inactive' | undefined {
  if (session.not_after && session.not_after <= now) return 'expired'
  if (isPast(session.created_at, limits.timeboxSeconds, now)) return 'expired'
  if (isPast(session.refreshed_at, limits.inactivitySeconds, now)) return 'inactive'
  return undefined
}

const isPast = (since: Date, seconds: number | undefined, now: Date) =>
  seconds !== undefined && since.getTime() + seconds * 1000 <= now.getTime()
