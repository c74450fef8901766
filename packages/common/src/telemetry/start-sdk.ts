import { once } from 'node:events'
import { createServer } from 'node:http'
import { type DiagLogger, DiagLogLevel, diag } from '@opentelemetry/api'
import type { Logger } from 'pino'

// Start of the OpenTelemetry SDK. Code records only through `@opentelemetry/api`; the SDK costs tens of megabytes and
// is loaded only when enabled. Spans: spans.ts, request-spans.ts; metrics: process-metrics.ts.
export interface TelemetryOptions {
  /** `auth` or `media`: name of the service and prefix of the attribute `<service>.version`. */
  service: string
  version: string
  tracing: boolean
  metrics: false | 'opentelemetry' | 'prometheus'
  prometheus: { host: string; port: number }
  debug: boolean
  log: Logger
}

/**
 * Starts the enabled exports; the returned function flushes and stops. The SDK reads the standard `OTEL_*` variables.
 */
export async function startTelemetry(options: TelemetryOptions): Promise<() => Promise<void>> {
  if (!options.tracing && !options.metrics) return async () => {}
  const { NodeSDK } = await import('@opentelemetry/sdk-node')
  const { env } = process
  const { OTEL_LOG_LEVEL: asked } = env
  diag.setLogger(telemetryLog(options.log), { logLevel: detailOf(options, asked) })
  const { service, version } = options
  // The SDK defaults to OTLP, so disabled exporters must be set to none.
  env.OTEL_TRACES_EXPORTER = options.tracing ? (env.OTEL_TRACES_EXPORTER ?? 'otlp') : 'none'
  env.OTEL_METRICS_EXPORTER = options.metrics === 'opentelemetry' ? (env.OTEL_METRICS_EXPORTER ?? 'otlp') : 'none'
  env.OTEL_LOGS_EXPORTER ??= 'none'
  // The default detectors would export the command line and the host.
  env.OTEL_NODE_RESOURCE_DETECTORS = withEnvironment(env.OTEL_NODE_RESOURCE_DETECTORS ?? 'serviceinstance')
  // OTEL_SERVICE_NAME overrides a name in OTEL_RESOURCE_ATTRIBUTES, so it is set only without one.
  if (!names('service.name', env.OTEL_RESOURCE_ATTRIBUTES ?? '')) env.OTEL_SERVICE_NAME ??= service
  const given = env.OTEL_RESOURCE_ATTRIBUTES ?? ''
  const versions = [
    `${service}.version=${version}`,
    ...(names('service.version', given) ? [] : [`service.version=${version}`]),
  ]
  env.OTEL_RESOURCE_ATTRIBUTES = [given, ...versions].filter(Boolean).join(',')
  const prometheus = options.metrics === 'prometheus' ? await openPrometheus(options.prometheus) : undefined
  // The SDK writes to the console if a level is set.
  delete env.OTEL_LOG_LEVEL
  const sdk = new NodeSDK(prometheus ? { metricReaders: [prometheus.exporter] } : {})
  if (asked !== undefined) env.OTEL_LOG_LEVEL = asked
  sdk.start()
  return async () => {
    prometheus?.server.close()
    await sdk.shutdown()
  }
}

const names = (attribute: string, list: string) =>
  list.split(',').some((part) => part.split('=')[0]?.trim() === attribute)

function detailOf({ debug }: Pick<TelemetryOptions, 'debug'>, asked: string | undefined): DiagLogLevel {
  if (debug) return DiagLogLevel.DEBUG
  const level = Object.entries(DiagLogLevel).find(([name]) => name === asked?.toUpperCase())?.[1]
  return typeof level === 'number' ? level : DiagLogLevel.WARN
}

/** Adds the `env` detector, which reads our version attribute. */
function withEnvironment(list: string): string {
  const detectors = list.split(',').map((name) => name.trim())
  if (detectors.includes('all') || detectors.includes('env')) return list
  return ['env', ...detectors.filter((name) => name !== '' && name !== 'none')].join(',')
}

/** Serves metrics at `/` (specification) and at `/metrics`, the default of scrapers. */
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

/** Interval of warnings: an unavailable collector fails an export every few seconds. */
const WARN_EVERY_MS = 60_000

const LONGEST_TEXT = 300

/** Logs the SDK's failures, at most one `warn` a minute, and details as `info`; no objects: they hold span batches. */
export function telemetryLog(log: Logger, now: () => number = () => performance.now()): DiagLogger {
  let warnedAt = Number.NEGATIVE_INFINITY
  let unreported = 0
  const warn = (...report: unknown[]) => {
    if (now() - warnedAt < WARN_EVERY_MS) {
      unreported++
      return
    }
    log.warn({ reason: textOf(report), unreported }, 'telemetry is not exported as configured')
    warnedAt = now()
    unreported = 0
  }
  const detail = (...report: unknown[]) => log.info({ detail: textOf(report) }, 'telemetry SDK')
  return { error: warn, warn, info: detail, debug: detail, verbose: detail }
}

function textOf(report: unknown[]): string {
  const texts = report.filter((part) => typeof part === 'string').map(withoutStack)
  return texts.join(' ').slice(0, LONGEST_TEXT)
}

/** The SDK reports an error as JSON with its stack. */
function withoutStack(text: string): string {
  if (!text.startsWith('{')) return text
  try {
    const { name, code, message } = JSON.parse(text) as Record<string, unknown>
    return [name, code, message].filter((part) => typeof part === 'string' && !['', 'Error'].includes(part)).join(' ')
  } catch {
    return text
  }
}
