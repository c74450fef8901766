import { DURATION_FORM, secondsOfParts } from '@services/common/config/duration'
import { apiError } from '../../../errors.ts'

/** Go counts nanoseconds in 64 bits: about 292 years. */
const MAX_MS = 2 ** 63 / 1e6
export const LONGEST_BAN = 'at most 2562047h, which is 292 years'
const MAX_LENGTH = 100

/**
 * Returns the end of a ban: `now` plus a signed Go duration (`1.5h`), also in days and weeks. Null for `none` and zero,
 * which lift it. A number without a unit is refused: an operator who meant hours would ban for no time. Throws
 * validation_failed.
 */
export function bannedUntil(duration: string, now: Date): Date | null {
  if (duration === 'none') return null
  const ms = duration.length <= MAX_LENGTH ? durationMs(duration) : Number.NaN
  if (!(Math.abs(ms) < MAX_MS)) {
    throw apiError('validation_failed', {
      message: `ban_duration must be "none" or ${DURATION_FORM}, of ${LONGEST_BAN}`,
    })
  }
  return ms === 0 ? null : new Date(now.getTime() + ms)
}

function durationMs(duration: string): number {
  const [, sign, parts = ''] = /^([+-]?)(.*)$/s.exec(duration) ?? []
  const ms = parts === '0' ? 0 : (secondsOfParts(parts) ?? Number.NaN) * 1000
  return sign === '-' ? -ms : ms
}
