import { readdir, readFile, readlink } from 'node:fs/promises'

/**
 * Processes that work in a directory or below it, with their command lines; those that ended meanwhile are left out.
 */
export async function programsIn(directory: string): Promise<{ pid: number; command: string[] }[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '')
      if (!cwd.startsWith(directory)) return []
      const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
      return [{ pid: Number(pid), command }]
    }),
  )
  return found.flat()
}
