import { readFileSync } from 'node:fs'

/** Linux counts in hundredths of a second, whatever the kernel does inside (USER_HZ). */
const TICKS_PER_SECOND = 100

/** CPU seconds of a process and of all its children that have ended, and theirs. */
export function cpuSeconds(pid: number | 'self'): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  const ticks = fields.slice(11, 15).reduce((total, field) => total + Number(field), 0)
  return ticks / TICKS_PER_SECOND
}
