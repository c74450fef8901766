import cluster from 'node:cluster'
import closeWithGrace from 'close-with-grace'
import type { Logger } from 'pino'
import { waitAtMost } from './wait-at-most.ts'

/** Longest time a stop may take before the process ends regardless: shorter than Kubernetes' default of 30 s. */
const STOP_WITHIN_MS = 25_000

/**
 * Runs `stop` once on SIGTERM, SIGINT or an uncaught error, then exits: 0 after a signal, 1 after an error. A second
 * signal exits at once.
 */
export function stopOnSignal(log: Logger, stop: () => Promise<void>): void {
  // Ctrl-C reaches the whole group; of several processes the first one passes it on, as SIGTERM.
  if (cluster.isWorker) process.on('SIGINT', () => {})
  const skip: 'SIGINT'[] = cluster.isWorker ? ['SIGINT'] : []
  closeWithGrace({ delay: STOP_WITHIN_MS, logger: false, skip }, async ({ signal, err }) => {
    if (err) log.fatal({ err }, 'uncaught error, stopping')
    else log.info({ signal }, 'stopping')
    await stop()
    log.info('stopped')
  })
}

/** Requests and jobs under way are waited for a little shorter. Two steps that hang leave time for the third. */
const STEP_WITHIN_MS = 10_000

/**
 * Runs each step after the one before, also when that failed or hangs: a database that is gone, or does not answer any more,
 * must not keep the rest open.
 */
export async function inOrder(log: Logger, steps: (() => unknown)[]): Promise<void> {
  for (const step of steps) {
    try {
      const how = await waitAtMost(STEP_WITHIN_MS, step())
      if (how === 'late') log.warn('a step of the stop hangs and is left alone')
    } catch (err) {
      log.warn({ err }, 'a step of the stop failed')
    }
  }
}
