import { readFile } from 'node:fs/promises'

/**
 * When a process began, in ticks of the kernel, which tells it from an earlier or later one of the same number. Undefined for a
 * process that is gone, and everywhere but on Linux.
 */
export async function processBirth(pid: number | 'self'): Promise<string | undefined> {
  const [state, ...fields] = await readStat(pid)
  return state === 'Z' ? undefined : fields[18]
}

/** True for a process that has ended and whose parent has not asked how. False where that cannot be told. */
export async function isZombie(pid: number): Promise<boolean> {
  const [state] = await readStat(pid)
  return state === 'Z'
}

/** Whether a process has this number: true for one of another user, and for a zombie. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** State and what follows it; the start is the 20th field from there (proc_pid_stat(5)). */
async function readStat(pid: number | 'self'): Promise<(string | undefined)[]> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name in brackets may hold blanks and brackets.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}
