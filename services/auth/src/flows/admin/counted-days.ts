// Days of counts, as the endpoints of statistics take and answer them.
import { inDocument } from '@services/common/http/route-schema'
import { type Static, Type } from 'typebox'
import { beginOf, type Statistics } from '../../core/statistics/statistics.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { parseCount } from '../../http/bodies/paging.ts'

const DEFAULT_DAYS = 30
/** Housekeeping deletes older days. */
const MAX_DAYS = 396

export const DaysQuery = Type.Object({
  days: Type.Optional(
    Type.String({
      description: `Number of days, ${MAX_DAYS} at most.`,
      ...inDocument({ type: 'integer', minimum: 1, maximum: MAX_DAYS, default: DEFAULT_DAYS }),
    }),
  ),
})

export function parseDays(query: Static<typeof DaysQuery>): number {
  const days = parseCount('days', query.days) ?? DEFAULT_DAYS
  if (days > MAX_DAYS) throw apiError('validation_failed', { message: `days must be at most ${MAX_DAYS}` })
  return days
}

/** Throws feature_disabled where nothing is counted. */
export function countsOf({ statistics }: Pick<Deps, 'statistics'>): Statistics {
  if (!statistics) throw apiError('feature_disabled', { message: 'Statistics are disabled' })
  return statistics
}

/** Begin of the first of so many hours or days, of which the last has begun. */
export const firstOf = (now: Date, unitMs: number, units: number): Date =>
  new Date(beginOf(unitMs, now).getTime() - (units - 1) * unitMs)
