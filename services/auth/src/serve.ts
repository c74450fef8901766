// Starts and stops the parts of the service. The one rule: parts close in reverse order, each step with a
// time limit (shutdown.ts of common). Tests: test/processes.slow.test.ts. Next: deps.ts, app.ts, worker.ts.

import { boundMemory } from '@services/common/process/limit-heap'
import { inOrder } from '@services/common/process/shutdown'
import type { Logger } from '@services/common/telemetry/logger'
import { startTelemetry } from '@services/common/telemetry/start-sdk'
import type { FastifyInstance } from 'fastify'
import { createApp } from './app.ts'
import type { Config } from './config.ts'
import { openDeps } from './deps.ts'
import { VERSION } from './version.ts'
import { startWorker } from './worker.ts'

export interface RunningService {
  app: FastifyInstance
  /** Address it listens on; differs from the setting for port 0. */
  address: string
  /** Refuses new requests, finishes those in progress, returns jobs, closes pools. */
  stop(): Promise<void>
}

/** Starts the HTTP server, and the worker unless separate processes do its work. */
export async function serve(config: Config, log: Logger): Promise<RunningService> {
  let stopping = false
  const opened: (() => unknown)[] = []
  const stop = () => {
    stopping = true
    return inOrder(log, opened.toReversed())
  }
  try {
    opened.push(await startTelemetry({ service: 'auth', version: VERSION, ...config.telemetry, log }))
    const deps = await openDeps(config, log, { isStopping: () => stopping })
    opened.push(deps.close)
    const app = await createApp(deps)
    if (config.server.workersEnabled) opened.push(await startWorker(deps))
    opened.push(() => app.close())
    await app.ready()
    boundMemory()
    const address = await app.listen({ host: config.server.host, port: config.server.port })
    return { app, address, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
