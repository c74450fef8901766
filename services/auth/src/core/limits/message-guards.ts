// The common part of the limits of mails (mail-guards.ts) and SMS (sms-guards.ts): caps, owners, the budget of all
// users.
import type { ErrorCode } from '../../errors.ts'
import { consume, countAll, type Limiter, type LimiterDeps, type LimitId, openLimiter, type Refund } from './limiter.ts'
import type { Rate } from './rate.ts'

export interface Guard {
  limiter: Limiter
  /** Counter key of an address or an owner. */
  keyFor(address: string): string
}

/**
 * Counts a message by guards from the narrowest to the widest: an address over its own cap takes nothing from the
 * others.
 */
export const countGuarded = (guards: readonly Guard[], address: string, code: ErrorCode): Promise<Refund> =>
  countAll(guards.map((guard) => () => consume(guard.limiter, guard.keyFor(address), code)))

/**
 * Caller whose messages count apart from strangers'. Either a user with a live session and a proven address, or a
 * client address that the recipient recently signed in from (key of password-attempts.ts). All callers behind that
 * address share it.
 */
export type Owner = { userId: string } | { client: string }

/** Quota that a message counts in: that of requests without proof, or an owner's. */
export type Share = 'strangers' | Owner

/** Mails of admins count only in the budget of all users. */
export type MailShare = Share | 'admins'

export const ownerKey = (owner: Owner): string => ('userId' in owner ? owner.userId : owner.client)

/** Part of a budget of all users that is kept for owners and admins. */
const RESERVE = 0.25

/**
 * Messages to one recipient from the reserve in each window: thirty recipients use up that of 360, not five. Counted by
 * recipient, because an account can be signed in to from any number of clients.
 */
const OWN_IN_RESERVE = 3

/**
 * Budget of all users together: requests without proof use up three quarters of it, owners all. `recipient` is a
 * counter key.
 */
export function openBudget(deps: LimiterDeps, { name, setting }: LimitId, rate: Rate, code: ErrorCode) {
  const all = openLimiter(deps, { name, setting }, rate)
  const unreserved = { ...rate, points: rate.points - Math.floor(rate.points * RESERVE) }
  const open = openLimiter(deps, { name: `${name}-open`, setting }, unreserved)
  const reserve = openLimiter(deps, { name: `${name}-reserve`, setting: null }, { ...rate, points: OWN_IN_RESERVE })
  const countAmong = (limiter: Limiter) => () => consume(limiter, 'all', code)
  const countOwn = (recipient: string) => async () => {
    const counted = await reserve.count(recipient)
    return typeof counted === 'function' ? counted : countAmong(open)()
  }
  return (share: MailShare, recipient: string): Promise<Refund> => {
    if (share === 'admins') return countAll([countAmong(all)])
    return countAll([share === 'strangers' ? countAmong(open) : countOwn(recipient), countAmong(all)])
  }
}
