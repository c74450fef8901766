import cluster from 'node:cluster'
import type { Logger } from 'pino'

/** A process that dies is replaced after this long, so that one that dies at once does not spin. */
const RESTART_AFTER_MS = 1_000

/**
 * Runs `start` here, or in `count` processes that share the port. Signals go to all of them; the first process waits for
 * the others to finish and then ends.
 */
export async function runProcesses(count: number, log: Logger, start: () => Promise<void>): Promise<void> {
  if (count <= 1 || cluster.isWorker) return start()
  let stopping = false
  for (let i = 0; i < count; i++) cluster.fork()
  cluster.on('exit', (worker, code) => {
    if (stopping) return
    log.error({ pid: worker.process.pid, code }, 'process died, starting another')
    setTimeout(() => {
      if (!stopping) cluster.fork()
    }, RESTART_AFTER_MS)
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      stopping = true
      for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill(signal)
    })
  }
}
