import { DURATION_FORM } from '@services/common/config/duration'
import { apiError } from '../../../errors.ts'

const UNIT_MS: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3, // the Greek letter instead of the micro sign: Go reads both
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}
const PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w)/g
const DURATION = new RegExp(`^[+-]?(?:0|(?:${PART.source})+)$`)

/** Go counts nanoseconds in 64 bits: about 292 years. */
const MAX_MS = 2 ** 63 / 1e6
const MAX_LENGTH = 100

/**
 * Returns the end of a ban: `now` plus a signed Go duration (`1.5h`), also in days and weeks. Null for `none` and zero,
 * which lift it. A number without a unit is refused: an operator who meant hours would ban for no time. Throws
 * validation_failed.
 */
export function bannedUntil(duration: string, now: Date): Date | null {
  if (duration === 'none') return null
  const ms = duration.length <= MAX_LENGTH && DURATION.test(duration) ? durationMs(duration) : Number.NaN
  if (!(Math.abs(ms) < MAX_MS)) {
    throw apiError('validation_failed', { message: `ban_duration must be "none" or ${DURATION_FORM}` })
  }
  return ms === 0 ? null : new Date(now.getTime() + ms)
}

function durationMs(duration: string): number {
  let ms = 0
  for (const [, amount, unit] of duration.matchAll(PART)) ms += Number(amount) * (UNIT_MS[unit as string] as number)
  return duration.startsWith('-') ? -ms : ms
}
