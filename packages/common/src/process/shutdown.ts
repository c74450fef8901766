// Time limits and signals of a stop. Its order is in start-server.ts, the draining of HTTP in http/request-hooks.ts,
// and the jobs that are given back in worker.ts of each service.
import cluster from 'node:cluster'
import closeWithGrace from 'close-with-grace'
import type { Logger } from 'pino'
import { withTimeout } from '../concurrency/with-timeout.ts'

/** Time limit of a stop: shorter than Kubernetes' default of 30 s. */
export const STOP_WITHIN_MS = 25_000

/** Runs `stop` once on SIGTERM, SIGINT or an uncaught error, then exits with 0 or 1. A second signal exits at once. */
export function stopOnSignal(log: Logger, stop: () => Promise<void>): void {
  // Ctrl-C reaches the whole process group; the primary process forwards it as SIGTERM.
  if (cluster.isWorker) process.on('SIGINT', () => {})
  const skip: 'SIGINT'[] = cluster.isWorker ? ['SIGINT'] : []
  closeWithGrace({ delay: STOP_WITHIN_MS, logger: false, skip }, async ({ signal, err }) => {
    if (err) log.fatal({ err }, 'uncaught error, stopping')
    else log.info({ signal }, 'stopping')
    await stop()
    log.info('stopped')
  })
}

/** Time limit of a step, longer than the draining of requests and jobs; two hanging steps leave time for a third. */
const STEP_WITHIN_MS = 10_000

/** Runs the steps one by one; a step that fails or hangs does not keep the others from running. */
export async function inOrder(log: Logger, steps: (() => unknown)[]): Promise<void> {
  for (const step of steps) {
    try {
      const how = await withTimeout(STEP_WITHIN_MS, step())
      if (how === 'late') log.warn('stop step timed out, continuing')
    } catch (err) {
      log.warn({ err }, 'stop step failed, continuing')
    }
  }
}
