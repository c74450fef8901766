/**
 * Time of an answer: a Date, or PostgreSQL's text or JSON of a time. Text in UTC is cut to milliseconds without a Date,
 * of which a page of users would need 400, a tenth of its CPU.
 */
export function isoTime(time: Date | string): string {
  if (typeof time !== 'string') return time.toISOString()
  const zoneLength = time.endsWith('+00:00') ? 6 : time.endsWith('+00') ? 3 : 0
  // Years from 10000 on are longer.
  if (zoneLength === 0 || time[4] !== '-') return new Date(time).toISOString()
  return `${time.slice(0, 10)}T${time.slice(11, 19)}.${time.slice(20, -zoneLength).slice(0, 3).padEnd(3, '0')}Z`
}
