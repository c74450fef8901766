import cluster, { type Worker } from 'node:cluster'
import type { Logger } from 'pino'

const SERVING = 'serving'

/** A process that dies is replaced after this long, so that one that dies at once does not spin. */
const RESTART_AFTER_MS = 1_000

/**
 * Runs `start` here, or in `count` processes that share the port. Signals go to all of them; the first process waits for
 * the others to finish and then ends. One that dies is replaced, unless it never came to serve: then starting again
 * would fail the same way, and everything ends with its exit code. `start` tells whether it serves.
 */
export async function runProcesses(count: number, log: Logger, start: () => Promise<boolean>): Promise<void> {
  if (count <= 1 || cluster.isWorker) {
    if (await start()) process.send?.(SERVING)
    return
  }
  const serving = new Set<Worker>()
  let stopping = false
  const stopAll = () => {
    stopping = true
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGTERM')
  }
  for (let i = 0; i < count; i++) cluster.fork()
  cluster.on('message', (worker, message) => {
    if (message === SERVING) serving.add(worker)
  })
  cluster.on('exit', (worker, code) => {
    if (stopping) return
    if (!serving.delete(worker)) {
      process.exitCode = code || 1
      return stopAll()
    }
    log.error({ pid: worker.process.pid, code }, 'process died, starting another')
    setTimeout(() => {
      if (!stopping) cluster.fork()
    }, RESTART_AFTER_MS)
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, stopAll)
}
