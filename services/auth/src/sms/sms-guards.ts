import type pg from 'pg'
import type { Config } from '../config.ts'
import { apiError } from '../errors.ts'
import { countGuarded, type Guard } from '../limits/guards.ts'
import { type GiveBack, keyOf, openLimiter } from '../limits/limiter.ts'
import type { Rate } from '../limits/rate.ts'
import { isCountryAllowed } from './countries.ts'

/**
 * What stands before a message is queued. Each SMS costs money and some numbers pay those who make us send to them
 * ("pumping"): a thief requests codes for ranges of numbers whose operator shares the fee. Asked for known and unknown
 * numbers alike, before the account is looked up, or the refusal would tell who has one.
 */
export interface SmsGuards {
  /** Throws validation_failed for a number (digits) in a country that gets no messages. */
  requireAllowedCountry(phone: string): void
  /**
   * Counts a message to this number. Throws validation_failed for a country that gets none and
   * over_sms_send_rate_limit for the rest. Not to be asked for test numbers: nothing is sent to them.
   */
  allow(phone: string): Promise<GiveBack>
}

/**
 * Numbers are handed out to operators in blocks of ten thousand or more (a North American exchange code is one block), so
 * a range a thief gets paid for shares everything but the last four digits; with three he would have ten times the cap.
 */
const BLOCK_DIGITS = 4

const DAY = 86_400

export function createSmsGuards(
  pool: pg.Pool,
  config: { sms: { guards: Config['sms']['guards'] }; database: { namespace: string } },
): SmsGuards {
  const { countries, maxPerNumber, maxPerPrefix, dailyBudget, sent } = config.sms.guards
  const open = (name: string, rate: Rate, keyFor: Guard['keyFor']): Guard => ({
    limiter: openLimiter(pool, config.database.namespace, name, rate),
    keyFor,
  })
  const all = () => 'all'
  const guards = [
    ...maxPerNumber.map((rate) => open(`sms-number-${rate.seconds}`, rate, keyOf)),
    open('sms-prefix', maxPerPrefix, (phone) => keyOf(phone.slice(0, -BLOCK_DIGITS))),
    ...(dailyBudget === undefined ? [] : [open('sms-day', { points: dailyBudget, seconds: DAY }, all)]),
    open('sms', sent, all),
  ]
  const requireAllowedCountry = (phone: string) => {
    if (isCountryAllowed(countries, phone)) return
    throw apiError('validation_failed', { message: 'Messages to numbers of this country are not sent' })
  }
  return {
    requireAllowedCountry,
    async allow(phone) {
      requireAllowedCountry(phone)
      return countGuarded(guards, phone, 'over_sms_send_rate_limit')
    },
  }
}
