import cluster, { type Worker } from 'node:cluster'
import type { Logger } from 'pino'
import { stopOnSignal } from './shutdown.ts'
import { explainStartFailure, failureCode } from './start-failure.ts'

/** The body of every main.ts: serves from as many processes as the settings say, until a signal; or says why it cannot. */
export async function runService<Config extends { server: { processes: number } }>(
  { config, log }: { config: Config; log: Logger },
  serve: (config: Config, log: Logger) => Promise<{ stop(): Promise<void> }>,
  portVariables: (config: Config) => Record<number, string>,
): Promise<void> {
  await runProcesses(config.server.processes, log, async () => {
    try {
      const service = await serve(config, log)
      stopOnSignal(log, service.stop)
      return true
    } catch (error) {
      log.fatal({ err: error }, explainStartFailure(error, portVariables(config)) ?? 'could not start')
      log.flush(() => process.exit(failureCode(error)))
      return false
    }
  })
}

const SERVING = 'serving'

/** A process that dies is replaced after this long; each replacement that does not come to serve doubles it. */
const RESTART_AFTER_MS = 1_000
const RESTART_AFTER_AT_MOST_MS = 30_000

/**
 * Runs `start` here, or in `count` processes that share the port. Signals go to all of them; the first process waits for
 * the others to finish and then ends. One that dies is replaced. When none ever came to serve, starting again would fail
 * the same way, and everything ends with its exit code; once one has served, a database that is away for a moment must
 * not take the healthy ones along. `start` tells whether it serves.
 */
export async function runProcesses(count: number, log: Logger, start: () => Promise<boolean>): Promise<void> {
  if (count <= 1 || cluster.isWorker) {
    if (await start()) process.send?.(SERVING)
    return
  }
  const serving = new Set<Worker>()
  let hasServed = false
  let failedInARow = 0
  let stopping = false
  const stopAll = () => {
    stopping = true
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGTERM')
  }
  for (let i = 0; i < count; i++) cluster.fork()
  cluster.on('message', (worker, message) => {
    if (message !== SERVING) return
    hasServed = true
    failedInARow = 0
    serving.add(worker)
  })
  cluster.on('exit', (worker, code) => {
    if (stopping) return
    if (!hasServed) {
      process.exitCode = code || 1
      return stopAll()
    }
    if (!serving.delete(worker)) failedInARow++
    const afterMs = Math.min(RESTART_AFTER_MS * 2 ** failedInARow, RESTART_AFTER_AT_MOST_MS)
    log.error({ died: worker.process.pid, code, afterMs }, 'process died, starting another')
    setTimeout(() => {
      if (!stopping) cluster.fork()
    }, afterMs)
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, stopAll)
}
