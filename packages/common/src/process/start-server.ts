import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { startTelemetry, type TelemetryOptions } from '../telemetry/start-sdk.ts'
import { boundMemory } from './limit-heap.ts'
import { inOrder } from './shutdown.ts'

interface ServerSettings {
  server: { host: string; port: number }
  telemetry: Omit<TelemetryOptions, 'service' | 'version' | 'log'>
}

/** A service that listens at `address`, which differs from the setting for port 0. */
export type RunningServer<Parts> = Parts & {
  address: string
  /** Refuses new requests, finishes those in progress, returns jobs, closes pools. */
  stop(): Promise<void>
}

/**
 * Starts telemetry, the parts of `open` and the HTTP server. `open` adds a stop step for each part that it has started.
 * They run in reverse order, each with a time limit, when the service stops or a later part fails. `stopping` aborts
 * first.
 */
export async function startServer<Parts extends { app: FastifyInstance }>(
  { name, version, config, log }: { name: string; version: string; config: ServerSettings; log: Logger },
  open: (stops: (() => unknown)[], stopping: AbortSignal) => Promise<Parts>,
): Promise<RunningServer<Parts>> {
  const stopping = new AbortController()
  const stops: (() => unknown)[] = []
  const stop = () => {
    stopping.abort()
    return inOrder(log, stops.toReversed())
  }
  try {
    stops.push(await startTelemetry({ service: name, version, ...config.telemetry, log }))
    const parts = await open(stops, stopping.signal)
    await parts.app.ready()
    boundMemory()
    const { host, port } = config.server
    return { ...parts, address: await parts.app.listen({ host, port }), stop }
  } catch (error) {
    await stop()
    throw error
  }
}
