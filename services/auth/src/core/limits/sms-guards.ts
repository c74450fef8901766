import { isCountryAllowed } from '../../adapters/sms/countries.ts'
import type { Config } from '../../config.ts'
import { apiError } from '../../errors.ts'
import { countGuarded, type Guard, openBudget, ownerKey, type Share } from './guards.ts'
import { countAll, type GiveBack, keyOf, type LimiterDeps, openLimiter } from './limiter.ts'
import type { Rate } from './rate.ts'

/**
 * Limits of SMS, each of which costs money: in "pumping" a thief requests codes for ranges of numbers whose operator shares the
 * fee. They are checked for known and unknown numbers alike, before the account is read, or a refusal would reveal accounts.
 */
export interface SmsGuards {
  /** Throws validation_failed for a number (digits) in a country that gets no messages. */
  requireAllowedCountry(phone: string): void
  /**
   * Counts a message to this number and its block of numbers in the share. Throws validation_failed for a country that gets
   * none, and over_sms_send_rate_limit for a used-up share.
   */
  allow(phone: string, share?: Share): Promise<GiveBack>
}

/**
 * Operators get numbers in blocks of ten thousand or more (a North American exchange code is one block), so a thief's range
 * has everything but the last four digits in common. Three digits would give the thief ten times the cap.
 */
const BLOCK_DIGITS = 4

/** Part of a block's owner share that one number may use up; further messages count without an owner. */
const PART_OF_ONE_NUMBER = 0.25

const DAY = 86_400

const OVER = 'over_sms_send_rate_limit'

export function createSmsGuards(deps: LimiterDeps, config: { sms: { guards: Config['sms']['guards'] } }): SmsGuards {
  const { countries, maxPerNumber, maxPerPrefix, dailyBudget, sent } = config.sms.guards
  const open = (name: string, rate: Rate, keyFor: Guard['keyFor']): Guard => {
    return { limiter: openLimiter(deps, name, rate), keyFor }
  }
  const perBlock = (name: string) => open(name, maxPerPrefix, (phone) => keyOf(phone.slice(0, -BLOCK_DIGITS)))
  const perNumber = maxPerNumber.map((rate) => open(`sms-number-${rate.seconds}`, rate, keyOf))
  const perOwner = maxPerNumber.map((rate) => open(`sms-user-${rate.seconds}`, rate, (owner) => owner))
  const [block, blockOfOwners] = [perBlock('sms-prefix'), perBlock('sms-prefix-users')]
  const budgets = [
    ...(dailyBudget === undefined ? [] : [openBudget(deps, 'sms-day', { points: dailyBudget, seconds: DAY }, OVER)]),
    openBudget(deps, 'sms', sent, OVER),
  ]
  const partOfOne = { ...maxPerPrefix, points: Math.ceil(maxPerPrefix.points * PART_OF_ONE_NUMBER) }
  const numberInBlock = openLimiter(deps, 'sms-prefix-number', partOfOne)
  const inBlockOfOwners = async (phone: string) => {
    const counted = await numberInBlock.count(keyOf(phone))
    if (typeof counted !== 'function') return countGuarded([block], phone, OVER)
    return countAll([async () => counted, () => countGuarded([blockOfOwners], phone, OVER)])
  }
  const inShare = (phone: string, share: Share) => {
    if (share === 'anybody') return [() => countGuarded([...perNumber, block], phone, OVER)]
    return [() => countGuarded(perOwner, ownerKey(share), OVER), () => inBlockOfOwners(phone)]
  }
  const requireAllowedCountry = (phone: string) => {
    if (isCountryAllowed(countries, phone)) return
    throw apiError('validation_failed', { message: 'Messages to numbers of this country are not sent' })
  }
  return {
    requireAllowedCountry,
    async allow(phone, share = 'anybody') {
      requireAllowedCountry(phone)
      return countAll([...inShare(phone, share), ...budgets.map((count) => () => count(share, keyOf(phone)))])
    },
  }
}
