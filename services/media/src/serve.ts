// Starts and stops the parts of the service. The one rule: parts close in reverse order, each step with a
// time limit (contract/media.md 2.18). Tests: test/process.slow.test.ts. Next: deps.ts, app.ts, worker.ts.

import { boundMemory } from '@services/common/process/limit-heap'
import { inOrder } from '@services/common/process/shutdown'
import type { Logger } from '@services/common/telemetry/logger'
import { startTelemetry } from '@services/common/telemetry/start-sdk'
import type { FastifyInstance } from 'fastify'
import { createApp } from './app.ts'
import type { Config } from './config.ts'
import { ensureBootstrapToken } from './core/tokens/create-token.ts'
import { type Deps, openDeps } from './deps.ts'
import { apiError } from './errors.ts'
import { startHousekeeping, sweepWorkDirectory } from './housekeeping.ts'
import { VERSION } from './version.ts'
import { startWorker } from './worker.ts'

export interface RunningService {
  app: FastifyInstance
  deps: Deps
  /** URL on which it listens; differs from the setting for port 0. */
  address: string
  /** Refuses new requests, finishes those in flight, gives jobs back, closes pools. */
  stop(): Promise<void>
}

/** Uploads and imports still under way this long after a stop get 503, two seconds before they would be cut off. */
const FORCE_STOP_AFTER_MS = 7_000

/** Starts the HTTP side, and the worker unless separate processes do its work. */
export async function serve(config: Config, log: Logger): Promise<RunningService> {
  const stopping = new AbortController()
  const forceStop = new AbortController()
  const opened: (() => unknown)[] = []
  const stop = async () => {
    stopping.abort()
    const timer = setTimeout(
      () => forceStop.abort(apiError('unavailable', { retryAfterSeconds: 1 })),
      FORCE_STOP_AFTER_MS,
    )
    await inOrder(log, opened.toReversed())
    clearTimeout(timer)
  }
  try {
    opened.push(await startTelemetry({ service: 'media', version: VERSION, ...config.telemetry, log }))
    const deps = await openDeps(config, log, { stopping: stopping.signal, forceStop: forceStop.signal })
    opened.push(deps.close)
    // Only here: workers and commands often run without the variable, which must not expire the token.
    await ensureBootstrapToken(deps, config.bootstrapToken)
    const app = await createApp(deps)
    const stopWorker = config.worker.enabled ? await startWorker(deps) : startHousekeeping(deps, sweepWorkDirectory)
    // Run in parallel: both may take long, and the time to stop is short.
    opened.push(() => Promise.all([app.close(), stopWorker()]))
    await app.ready()
    boundMemory()
    const address = await app.listen({ host: config.server.host, port: config.server.port })
    if (!config.uploadNeedsToken && !config.limits.header) {
      log.warn('uploads need no token and MEDIA_RATE_LIMIT_HEADER is not set: all callers share one limit')
    }
    return { app, deps, address, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
