// Starts the parts of the service in their order. Tests: test/processes.slow.test.ts.
import { type RunningServer, startServer } from '@services/common/process/start-server'
import type { Logger } from '@services/common/telemetry/logger'
import type { FastifyInstance } from 'fastify'
import { createApp } from './app.ts'
import type { Config } from './config.ts'
import { openDeps } from './deps.ts'
import { VERSION } from './version.ts'
import { startWorker } from './worker.ts'

/** Starts the HTTP server, the port of the console, and the worker unless separate processes do its work. */
export async function serve(config: Config, log: Logger): Promise<RunningServer<{ app: FastifyInstance }>> {
  const service = await startServer({ name: 'auth', version: VERSION, config, log }, async (stops, stopping) => {
    const deps = await openDeps(config, log, { isStopping: () => stopping.aborted })
    stops.push(deps.close, deps.sealedRows.start())
    const app = await createApp(deps)
    if (config.server.workersEnabled) stops.push(await startWorker(deps))
    stops.push(() => app.close())
    return { app }
  })
  const { enabled, port } = config.console
  if (!enabled || port === undefined) return service
  try {
    const { openConsolePort } = await import('./console/console-port.ts')
    const closeConsole = await openConsolePort(service.app, { host: config.server.host, port })
    const stop = () => {
      closeConsole()
      return service.stop()
    }
    return { ...service, stop }
  } catch (error) {
    await service.stop()
    throw error
  }
}
