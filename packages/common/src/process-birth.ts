import { readFile } from 'node:fs/promises'

/**
 * When a process began, in ticks of the kernel, which tells it from an earlier or later one of the same number. Undefined for a
 * process that is gone, and everywhere but on Linux.
 */
export async function processBirth(pid: number | 'self'): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name in brackets may hold blanks and brackets; after it come the state and, as the 20th field, the start (proc_pid_stat(5)).
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return state === 'Z' ? undefined : fields[18]
}
