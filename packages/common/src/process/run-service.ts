// The process of a service: its command line, settings, start and orderly stop.
import cluster, { type Worker } from 'node:cluster'
import type { Logger } from 'pino'
import { explainStartFailure, failureCode, type PortSettings, portVariables } from './explain-start-failure.ts'
import { boundMemory } from './limit-heap.ts'
import { STOP_WITHIN_MS, stopOnSignal } from './shutdown.ts'

/**
 * The body of every main.ts: serves from the configured number of processes until a signal, or logs why it cannot
 * start.
 */
export async function runService<Config extends PortSettings & { server: { processes: number } }>(
  prefix: string,
  { config, log }: { config: Config; log: Logger },
  serve: (config: Config, log: Logger) => Promise<{ stop(): Promise<void> }>,
): Promise<void> {
  await runProcesses(config.server.processes, log, async () => {
    try {
      const service = await serve(config, log)
      stopOnSignal(log, service.stop)
      return true
    } catch (error) {
      log.fatal({ err: error }, explainStartFailure(error, portVariables(prefix, config)) ?? 'could not start')
      log.flush(() => process.exit(failureCode(error)))
      return false
    }
  })
}

const SERVING = 'serving'

/** Wait before a dead process is replaced; each replacement that dies before it serves doubles it. */
const RESTART_AFTER_MS = 1_000
const RESTART_AFTER_AT_MOST_MS = 30_000

/**
 * Runs `start` here, or in `count` processes that share the port. The first process passes signals on and exits after
 * all others. A process that dies before any has served would die again, so all exit with its code. Later a dead
 * process is replaced, because an unavailable database must not end the healthy ones. `start` resolves to whether it
 * serves. A process that does not even end itself in time, such as a suspended one, is killed.
 */
export async function runProcesses(
  count: number,
  log: Logger,
  start: () => Promise<boolean>,
  stopWithinMs = STOP_WITHIN_MS + 1_000,
): Promise<void> {
  if (count <= 1 || cluster.isWorker) {
    if (await start()) process.send?.(SERVING)
    return
  }
  const serving = new Set<Worker>()
  let hasServed = false
  let failedInARow = 0
  let stopping = false
  const signalAll = (signal: NodeJS.Signals) => {
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill(signal)
  }
  const stopAll = () => {
    stopping = true
    signalAll('SIGTERM')
    setTimeout(signalAll, stopWithinMs, 'SIGKILL').unref()
  }
  for (let i = 0; i < count; i++) cluster.fork()
  boundMemory() // 5 MiB less
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
    log.error({ died: worker.process.pid, code, afterMs }, 'process died, restarting')
    setTimeout(() => {
      if (!stopping) cluster.fork()
    }, afterMs)
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, stopAll)
}
