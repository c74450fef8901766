import type { ErrorCode } from '../../errors.ts'
import { consume, countAll, type GiveBack, type Limiter, type LimiterDeps, openLimiter } from './limiter.ts'
import type { Rate } from './rate.ts'

/** One of several caps that a message must keep all of. */
export interface Guard {
  limiter: Limiter
  /** What it is counted under. */
  keyFor(address: string): string
}

/** Counts a message. Guards go from the narrowest to the widest: an address over its own cap takes nothing from the others. */
export const countGuarded = (guards: readonly Guard[], address: string, code: ErrorCode): Promise<GiveBack> =>
  countAll(
    guards.map(
      ({ limiter, keyFor }) =>
        () =>
          consume(limiter, keyFor(address), code),
    ),
  )

/** Caller with a share of messages of its own. Strangers at the same client address have the share in common. */
export type Owner =
  /** A user with a live session, for a message to a proven address or number of theirs. */
  | { userId: string }
  /** Key of a client address that the recipient signed in from lately (password-attempts.ts). */
  | { client: string }

/** Share that a message is counted in: of requests that anybody can make, or of an owner. */
export type Share = 'anybody' | Owner

/** The same for mails, of which admins send some: those count in the budget of all users alone. */
export type MailShare = Share | 'admins'

export const ownerKey = (owner: Owner): string => ('userId' in owner ? owner.userId : owner.client)

/** Part of a budget of all users that requests of anybody leave to owners and admins. */
const RESERVE = 0.25

/**
 * Messages to one recipient that may come from the reserve in each window: thirty recipients use up that of 360, not five. Counted by
 * recipient, because an account may have been signed in to from any number of clients.
 */
const OWN_IN_RESERVE = 3

/**
 * What all users together may send: requests that anybody can make use up three quarters of it, those of owners all. `recipient` is a
 * counter's key.
 */
export function openBudget(deps: LimiterDeps, name: string, rate: Rate, code: ErrorCode) {
  const all = openLimiter(deps, name, rate)
  const open = openLimiter(deps, `${name}-open`, { ...rate, points: rate.points - Math.floor(rate.points * RESERVE) })
  const reserve = openLimiter(deps, `${name}-reserve`, { ...rate, points: OWN_IN_RESERVE })
  const countAmong = (limiter: Limiter) => () => consume(limiter, 'all', code)
  const countOwn = (recipient: string) => async () => {
    const counted = await reserve.count(recipient)
    return typeof counted === 'function' ? counted : countAmong(open)()
  }
  return (share: MailShare, recipient: string): Promise<GiveBack> => {
    if (share === 'admins') return countAll([countAmong(all)])
    return countAll([share === 'anybody' ? countAmong(open) : countOwn(recipient), countAmong(all)])
  }
}
