export interface SessionTimes {
  created_at: Date
  refreshed_at: Date
  not_after: Date | null
  /** A newer sign-in exists, and only the newest session is valid. */
  is_replaced: boolean
}

export interface SessionLimits {
  timeboxSeconds: number | undefined
  inactivitySeconds: number | undefined
  /** Only the newest session of a user is valid. */
  singlePerUser: boolean
}

export interface RepeatRule {
  /** The client's address is known (a trusted header), so a late repeat must come from it. */
  comparesAddress: boolean
}

/** Returns the limit that has ended a session, if any (contract/auth-core.md 10.2). */
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
