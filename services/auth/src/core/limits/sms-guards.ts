// Limits of SMS: to one number, to a block of numbers, of a day, and of all users together.
import { ApiError } from '@services/common/errors'
import { isCountryAllowed } from '../../adapters/sms/countries.ts'
import { blockOf } from '../../adapters/sms/number-block.ts'
import type { Config } from '../../config.ts'
import { apiError } from '../../errors.ts'
import { consume, countAll, keyOf, type LimiterDeps, type LimitId, openLimiter, type Refund } from './limiter.ts'
import { countGuarded, type Guard, openBudget, ownerKey, type Share } from './message-guards.ts'
import type { Rate } from './rate.ts'

export type SmsGuards = ReturnType<typeof createSmsGuards>

/**
 * Part of a block's share that one asker may use up. Of the strangers' share it is that of a network, where an address
 * is trusted. Of the owners' it is that of a number, whose further messages count without an owner.
 */
const PART_OF_ONE = 0.25

/** Quota of a message and the network that asks for it, where an address is trusted. */
export interface Asker {
  share?: Share | undefined
  network?: string | undefined
}

const DAY = 86_400

const OF_DAY = { name: 'sms-day', setting: 'AUTH_SMS_DAILY_BUDGET' } as const
const OF_ALL = { name: 'sms', setting: 'AUTH_RATE_LIMIT_SMS_SENT' } as const

const OVER = 'over_sms_send_rate_limit'

/**
 * Creates the limits of SMS against "pumping": a thief requests codes for ranges of numbers and shares the fee with
 * their operator. All numbers are checked alike, before the account is read: a refusal reveals no account.
 */
export function createSmsGuards(deps: LimiterDeps, config: { sms: { guards: Config['sms']['guards'] } }) {
  const { countries, maxPerNumber, maxPerPrefix, dailyBudget, sent } = config.sms.guards
  const open = (id: LimitId, rate: Rate, keyFor: Guard['keyFor']): Guard => {
    return { limiter: openLimiter(deps, id, rate), keyFor }
  }
  const ofBlock = (name: string) => ({ name, setting: 'AUTH_SMS_MAX_PER_PREFIX' }) as const
  const perBlock = (name: string) => open(ofBlock(name), maxPerPrefix, (phone) => keyOf(blockOf(phone)))
  const ofNumber = (name: string) => ({ name, setting: 'AUTH_SMS_MAX_PER_NUMBER' }) as const
  const perNumber = maxPerNumber.map((rate) => open(ofNumber(`sms-number-${rate.seconds}`), rate, keyOf))
  const perOwner = maxPerNumber.map((rate) => open(ofNumber(`sms-user-${rate.seconds}`), rate, (owner) => owner))
  const [block, blockOfOwners] = [perBlock('sms-prefix'), perBlock('sms-prefix-users')]
  const budgets = [
    ...(dailyBudget === undefined ? [] : [openBudget(deps, OF_DAY, { points: dailyBudget, seconds: DAY }, OVER)]),
    openBudget(deps, OF_ALL, sent, OVER),
  ]
  const partOfOne = { ...maxPerPrefix, points: Math.ceil(maxPerPrefix.points * PART_OF_ONE) }
  const numberInBlock = openLimiter(deps, ofBlock('sms-prefix-number'), partOfOne)
  const networkInBlock = openLimiter(deps, ofBlock('sms-prefix-network'), partOfOne)
  const inBlockOfOwners = async (phone: string) => {
    const counted = await numberInBlock.count(keyOf(phone))
    if (typeof counted !== 'function') return countGuarded([block], phone, OVER)
    return countAll([async () => counted, () => countGuarded([blockOfOwners], phone, OVER)])
  }
  const inShare = (phone: string, { share = 'strangers', network }: Asker) => {
    if (share === 'strangers') {
      const key = network === undefined ? undefined : keyOf(`${blockOf(phone)} ${network}`)
      return [
        () => countGuarded(perNumber, phone, OVER),
        ...(key === undefined ? [] : [() => consume(networkInBlock, key, OVER)]),
        () => countGuarded([block], phone, OVER),
      ]
    }
    return [() => countGuarded(perOwner, ownerKey(share), OVER), () => inBlockOfOwners(phone)]
  }
  const inBudgets = (phone: string, { share = 'strangers' }: Asker) =>
    budgets.map((count) => () => count(share, keyOf(phone)))
  /** Throws validation_failed for a number (digits) in a country that gets no messages. */
  const requireAllowedCountry = (phone: string) => {
    if (isCountryAllowed(countries, phone)) return
    throw apiError('validation_failed', { message: 'Messages to numbers of this country are not sent' })
  }
  return {
    requireAllowedCountry,
    /**
     * Counts a message to this number and its block in the share; throws over_sms_send_rate_limit if that is used up.
     */
    async allow(phone: string, asker: Asker = {}): Promise<Refund> {
      requireAllowedCountry(phone)
      return countAll([...inShare(phone, asker), ...inBudgets(phone, asker)])
    },
    /** The same for a sign-in code, which a full number or block does not refuse. */
    async allowSignIn(phone: string, asker: Asker): Promise<{ isOverCap: boolean; refund: Refund }> {
      requireAllowedCountry(phone)
      let isOverCap = false
      const capped = async () => {
        const counted = await countAll(inShare(phone, asker)).catch((error: unknown) => {
          if (!(error instanceof ApiError)) throw error
          isOverCap = true
        })
        return counted ?? (async () => {})
      }
      const refund = await countAll([capped, ...inBudgets(phone, asker)])
      return { isOverCap, refund }
    },
  }
}
