// Starts the parts of the service in their order. Tests: test/processes.slow.test.ts.
import { type RunningServer, startServer } from '@services/common/process/start-server'
import type { Logger } from '@services/common/telemetry/logger'
import type { FastifyInstance } from 'fastify'
import { createApp } from './app.ts'
import type { Config } from './config.ts'
import { openDeps } from './deps.ts'
import { VERSION } from './version.ts'
import { startWorker } from './worker.ts'

/** Starts the HTTP server, and the worker unless separate processes do its work. */
export const serve = (config: Config, log: Logger): Promise<RunningServer<{ app: FastifyInstance }>> =>
  startServer({ name: 'auth', version: VERSION, config, log }, async (stops, stopping) => {
    const deps = await openDeps(config, log, { isStopping: () => stopping.aborted })
    stops.push(deps.close, deps.sealedRows.start())
    const app = await createApp(deps)
    if (config.server.workersEnabled) stops.push(await startWorker(deps))
    stops.push(() => app.close())
    return { app }
  })
