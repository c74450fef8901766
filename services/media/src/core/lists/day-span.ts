import { invalidField } from '../clips/clip-fields.ts'
import { dayOf, monthBefore } from '../tokens/usage.store.ts'

/** Most days of one answer. */
export const MAX_DAYS = 400

const DAY_MS = 86_400_000

/** Days of a query, both included; the last 30 without `from`. */
export interface DaySpan {
  from: string
  to: string
}

/** Throws invalid_field. */
export function readSpan(query: Partial<DaySpan>, now: Date): DaySpan {
  const to = query.to === undefined ? dayOf(now) : readDay('to', query.to)
  const from = query.from === undefined ? monthBefore(new Date(`${to}T00:00:00Z`)) : readDay('from', query.from)
  const days = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1
  if (days < 1 || days > MAX_DAYS) throw invalidField('from', `must be at most ${MAX_DAYS} days before \`to\``)
  return { from, to }
}

/** Throws invalid_field. */
export function readDay(name: string, day: string): string {
  const moment = /^\d{4}-\d{2}-\d{2}$/.test(day) ? new Date(`${day}T00:00:00Z`) : undefined
  if (moment && moment.getTime() >= 0 && dayOf(moment) === day) return day
  throw invalidField(name, 'must be a day since 1970, as in 2026-11-28')
}
