// Starts the parts of the service in their order. Tests: test/process.slow.test.ts.
import { type RunningServer, startServer } from '@services/common/process/start-server'
import type { Logger } from '@services/common/telemetry/logger'
import type { FastifyInstance } from 'fastify'
import { createApp } from './app.ts'
import type { Config } from './config.ts'
import { ensureBootstrapToken } from './core/tokens/create-token.ts'
import { type Deps, openDeps } from './deps.ts'
import { apiError } from './errors.ts'
import { startHousekeeping, sweepWorkDirectory } from './housekeeping.ts'
import { VERSION } from './version.ts'
import { startWorker } from './worker.ts'

export type RunningService = RunningServer<{ app: FastifyInstance; deps: Deps }>

/** Uploads and imports still under way this long after a stop get 503, two seconds before they would be cut off. */
const FORCE_STOP_AFTER_MS = 7_000

/** Starts the HTTP side, and the worker unless separate processes do its work. */
export async function serve(config: Config, log: Logger): Promise<RunningService> {
  return startServer({ name: 'media', version: VERSION, config, log }, async (stops, stopping) => {
    const deps = await openDeps(config, log, { stopping, forceStop: forceStopAfter(stopping) })
    stops.push(deps.close)
    // Only here: workers and commands often run without the variable, which must not expire the token.
    await ensureBootstrapToken(deps, config.bootstrapToken)
    const app = await createApp(deps)
    const stopWorker = config.worker.enabled ? await startWorker(deps) : startHousekeeping(deps, sweepWorkDirectory)
    // Run in parallel: both may take long, and the time to stop is short.
    stops.push(() => Promise.all([app.close(), stopWorker()]))
    return { app, deps }
  })
}

function forceStopAfter(stopping: AbortSignal): AbortSignal {
  const forceStop = new AbortController()
  const abort = () => forceStop.abort(apiError('unavailable', { retryAfterSeconds: 1 }))
  stopping.addEventListener('abort', () => setTimeout(abort, FORCE_STOP_AFTER_MS).unref())
  return forceStop.signal
}
