import { readFile } from 'node:fs/promises'

/**
 * Start time in kernel ticks, to distinguish processes with one pid. Undefined after the end, also before the parent
 * has collected it, and except on Linux.
 */
export async function processBirth(pid: number | 'self'): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name in parentheses may contain blanks and parentheses; the start time is the 22nd field (proc_pid_stat(5)).
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return state === 'Z' ? undefined : fields[18]
}

/** Whether a process has this pid: also one of another user, and a zombie. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
