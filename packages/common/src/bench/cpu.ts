import { readdirSync, readFileSync } from 'node:fs'

/** USER_HZ: Linux reports hundredths of a second, whatever its own tick. */
const TICKS_PER_SECOND = 100

export function cpuSeconds(pid: number | 'self'): number {
  const ticks = statFields(pid)
    .slice(11, 15)
    .reduce((total, field) => total + Number(field), 0)
  return ticks / TICKS_PER_SECOND
}

/**
 * CPU seconds of a process, its descendants (such as a server with a process per connection) and those that have ended.
 */
export function cpuSecondsOfAll(pid: number): number {
  return familyOf(pid).reduce((total, member) => total + (whileItRuns(() => cpuSeconds(member)) ?? 0), 0)
}

/** Resident bytes of a process and its descendants; shared memory counts once for each. */
export const residentBytesOfAll = (pid: number): number => memoryOf(familyOf(pid), 'VmRSS')

/** The same for the highest each has had so far, if not all at the same time. */
export const peakBytesOfAll = (pid: number): number => memoryOf(familyOf(pid), 'VmHWM')

/** Resident bytes of the descendants of a process, without mapped files such as libraries. */
export const privateBytesOfDescendants = (pid: number): number => memoryOf(familyOf(pid).slice(1), 'RssAnon')

function memoryOf(pids: number[], field: 'VmRSS' | 'VmHWM' | 'RssAnon'): number {
  const line = new RegExp(`${field}:\\s+(\\d+) kB`)
  const bytes = (member: number) =>
    whileItRuns(() => Number(line.exec(readFileSync(`/proc/${member}/status`, 'utf8'))?.[1]) * 1024)
  return pids.reduce((total, member) => total + (bytes(member) || 0), 0)
}

function familyOf(pid: number): number[] {
  const family = [pid]
  for (const member of family) family.push(...childrenOf(member))
  return family
}

/**
 * Children of a process by the thread that started each: a fraction of the time that all processes of the machine take.
 */
function childrenOf(pid: number): number[] {
  const threads = whileItRuns(() => readdirSync(`/proc/${pid}/task`)) ?? []
  const lists = threads.map((id) => whileItRuns(() => readFileSync(`/proc/${pid}/task/${id}/children`, 'utf8')))
  return lists.flatMap((list) => list?.match(/\d+/g) ?? []).map(Number)
}

/** Fields from the state on; the name before it may contain anything. */
function statFields(pid: number | 'self'): string[] {
  return readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
}

function whileItRuns<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
