import closeWithGrace from 'close-with-grace'
import type { Logger } from 'pino'

/** Longest time a stop may take before the process ends regardless: shorter than Kubernetes' default of 30 s. */
const STOP_WITHIN_MS = 25_000

/**
 * Runs `stop` once on SIGTERM, SIGINT or an uncaught error, then exits: 0 after a signal, 1 after an error. A second
 * signal exits at once.
 */
export function stopOnSignal(log: Logger, stop: () => Promise<void>): void {
  closeWithGrace({ delay: STOP_WITHIN_MS, logger: false }, async ({ signal, err }) => {
    if (err) log.fatal({ err }, 'uncaught error, stopping')
    else log.info({ signal }, 'stopping')
    await stop()
    log.info('stopped')
  })
}
