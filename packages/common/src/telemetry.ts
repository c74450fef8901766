import { once } from 'node:events'
import { createServer } from 'node:http'
import { DiagLogLevel, diag } from '@opentelemetry/api'
import type { Logger } from 'pino'
import { telemetryLog } from './telemetry-log.ts'

/**
 * OpenTelemetry. Code records through `@opentelemetry/api` only; the SDK is loaded here, and only when a switch asks
 * for it, because it costs tens of megabytes.
 */
export interface TelemetryOptions {
  /** `auth` or `media`: names the service and the resource attribute `<service>.version`. */
  service: string
  version: string
  tracing: boolean
  metrics: false | 'opentelemetry' | 'prometheus'
  prometheus: { host: string; port: number }
  /** More detail from the SDK itself (`DEBUG=true`). */
  debug: boolean
  log: Logger
}

/** Starts what is switched on; the returned function flushes and stops. Standard `OTEL_*` variables reach the SDK itself. */
export async function startTelemetry(options: TelemetryOptions): Promise<() => Promise<void>> {
  if (!options.tracing && !options.metrics) return async () => {}
  const { NodeSDK } = await import('@opentelemetry/sdk-node')
  const { env } = process
  const { OTEL_LOG_LEVEL: asked } = env
  diag.setLogger(telemetryLog(options.log), { logLevel: detailOf(options, asked) })
  const { service, version } = options
  // Unset exporters make the SDK pick OTLP by itself, so what is switched off must be said.
  env.OTEL_TRACES_EXPORTER = options.tracing ? (env.OTEL_TRACES_EXPORTER ?? 'otlp') : 'none'
  env.OTEL_METRICS_EXPORTER = options.metrics === 'opentelemetry' ? (env.OTEL_METRICS_EXPORTER ?? 'otlp') : 'none'
  env.OTEL_LOGS_EXPORTER ??= 'none'
  // Without this every scrape shows the command line and the host.
  env.OTEL_NODE_RESOURCE_DETECTORS = withEnvironment(env.OTEL_NODE_RESOURCE_DETECTORS ?? 'serviceinstance')
  // Wins over a name in OTEL_RESOURCE_ATTRIBUTES, so that it is set only where there is none.
  if (!names('service.name', env.OTEL_RESOURCE_ATTRIBUTES ?? '')) env.OTEL_SERVICE_NAME ??= service
  const given = env.OTEL_RESOURCE_ATTRIBUTES ?? ''
  // A version that is given stands, as the name does.
  const versions = [
    `${service}.version=${version}`,
    ...(names('service.version', given) ? [] : [`service.version=${version}`]),
  ]
  env.OTEL_RESOURCE_ATTRIBUTES = [given, ...versions].filter(Boolean).join(',')
  const prometheus = options.metrics === 'prometheus' ? await openPrometheus(options.prometheus) : undefined
  // With a level the SDK would write to the console, between the lines of the log.
  delete env.OTEL_LOG_LEVEL
  const sdk = new NodeSDK(prometheus ? { metricReaders: [prometheus.exporter] } : {})
  if (asked !== undefined) env.OTEL_LOG_LEVEL = asked
  sdk.start()
  return async () => {
    prometheus?.server.close()
    await sdk.shutdown()
  }
}

/** Whether this list of attributes, as in `OTEL_RESOURCE_ATTRIBUTES`, has one of this name. */
const names = (attribute: string, list: string) =>
  list.split(',').some((part) => part.split('=')[0]?.trim() === attribute)

/** How much the SDK reports: failures, unless a setting asks for more or for less. */
function detailOf({ debug }: Pick<TelemetryOptions, 'debug'>, asked: string | undefined): DiagLogLevel {
  if (debug) return DiagLogLevel.DEBUG
  const level = Object.entries(DiagLogLevel).find(([name]) => name === asked?.toUpperCase())?.[1]
  return typeof level === 'number' ? level : DiagLogLevel.WARN
}

/** The detectors of this list, and the one that reads what we say of the resource: without it the version would be lost. */
function withEnvironment(list: string): string {
  const detectors = list.split(',').map((name) => name.trim())
  if (detectors.includes('all') || detectors.includes('env')) return list
  return ['env', ...detectors.filter((name) => name !== '' && name !== 'none')].join(',')
}

/** Serves the figures at `/` (specification) and at `/metrics`, where scrapers look by default. */
async function openPrometheus({ host, port }: { host: string; port: number }) {
  const { PrometheusExporter } = await import('@opentelemetry/exporter-prometheus')
  const exporter = new PrometheusExporter({ preventServerStart: true })
  const server = createServer((request, response) => {
    const isMetrics = request.method === 'GET' && (request.url === '/' || request.url === '/metrics')
    if (isMetrics) exporter.getMetricsRequestHandler(request, response)
    else response.writeHead(404).end()
  })
  server.listen(port, host)
  await once(server, 'listening')
  return { exporter, server }
}
