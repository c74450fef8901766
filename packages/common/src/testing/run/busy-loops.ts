import { spawn, spawnSync } from 'node:child_process'

const LOOPS = 4

/** Command that runs another one on one core; empty where the system cannot. */
export const ON_ONE_CORE: readonly string[] =
  spawnSync('taskset', ['-c', '0', 'true']).status === 0 ? ['taskset', '-c', '0'] : []

/** Keeps the machine busy, or one core of it, until the process exits or the returned function is called. */
export function startBusyLoops(prefix: readonly string[] = []): () => void {
  const [program = '', ...args] = [...prefix, process.execPath, '-e', 'for (;;);']
  const loops = Array.from({ length: LOOPS }, () => spawn(program, args, { stdio: 'ignore' }))
  const end = () => {
    for (const loop of loops) loop.kill('SIGKILL')
  }
  process.once('exit', end)
  return end
}
