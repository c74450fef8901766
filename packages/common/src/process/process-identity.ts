import { readFile } from 'node:fs/promises'

/** Start time in kernel ticks, to distinguish processes with one pid. Undefined after the end, and except on Linux. */
export async function processBirth(pid: number | 'self'): Promise<string | undefined> {
  const [state, ...fields] = await readStat(pid)
  return state === 'Z' ? undefined : fields[18]
}

/** Whether a process has ended without its parent collecting it; false where unknown. */
export async function isZombie(pid: number): Promise<boolean> {
  const [state] = await readStat(pid)
  return state === 'Z'
}

/** Whether a process has this pid: also one of another user, and a zombie. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Fields from the state on; the start time is the 20th of them (proc_pid_stat(5)). */
async function readStat(pid: number | 'self'): Promise<(string | undefined)[]> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name in parentheses may contain blanks and parentheses.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}
