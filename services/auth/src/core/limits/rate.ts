import { duration } from '@services/common/config/variables'

export interface Rate {
  points: number
  seconds: number
}

/** Parses `N` (per hour) or `N/duration`. */
export function parseRate(value: string): Rate {
  const [points = '', period = '1h', ...more] = value.split('/')
  const seconds = duration('').parse(period) as number
  const isNumber = /^\d+$/.test(points) && Number.isSafeInteger(Number(points))
  if (!isNumber || !(seconds > 0 && Number.isSafeInteger(Math.ceil(seconds))) || more.length > 0) {
    throw new Error('must be a number, or N/duration')
  }
  return { points: Number(points), seconds }
}

/** Parses rates that all hold, such as `5/1h,10/24h`. */
export function parseRates(value: string): Rate[] {
  const list = value.split(',').map((item) => parseRate(item.trim()))
  if (new Set(list.map(({ seconds }) => seconds)).size < list.length) throw new Error('must have different durations')
  return list
}
