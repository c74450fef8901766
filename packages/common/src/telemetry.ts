import { once } from 'node:events'
import { createServer } from 'node:http'
import {
  type Attributes,
  context,
  DiagConsoleLogger,
  DiagLogLevel,
  diag,
  metrics,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

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
}

/** Starts what is switched on; the returned function flushes and stops. Standard `OTEL_*` variables reach the SDK itself. */
export async function startTelemetry(options: TelemetryOptions): Promise<() => Promise<void>> {
  if (!options.tracing && !options.metrics) return async () => {}
  const { NodeSDK } = await import('@opentelemetry/sdk-node')
  if (options.debug) diag.setLogger(new DiagConsoleLogger(), DiagLogLevel.DEBUG)
  const { env } = process
  const { service, version } = options
  // Unset exporters make the SDK pick OTLP by itself, so what is switched off must be said.
  env.OTEL_TRACES_EXPORTER = options.tracing ? (env.OTEL_TRACES_EXPORTER ?? 'otlp') : 'none'
  env.OTEL_METRICS_EXPORTER = options.metrics === 'opentelemetry' ? (env.OTEL_METRICS_EXPORTER ?? 'otlp') : 'none'
  env.OTEL_LOGS_EXPORTER ??= 'none'
  // Without this every scrape shows the command line and the host.
  env.OTEL_NODE_RESOURCE_DETECTORS = withEnvironment(env.OTEL_NODE_RESOURCE_DETECTORS ?? 'serviceinstance')
  // Wins over a name in OTEL_RESOURCE_ATTRIBUTES, so that it is set only where there is none.
  if (!/(^|,)\s*service\.name\s*=/.test(env.OTEL_RESOURCE_ATTRIBUTES ?? '')) env.OTEL_SERVICE_NAME ??= service
  env.OTEL_RESOURCE_ATTRIBUTES = [env.OTEL_RESOURCE_ATTRIBUTES, `${service}.version=${version}`]
    .filter(Boolean)
    .join(',')
  const prometheus = options.metrics === 'prometheus' ? await openPrometheus(options.prometheus) : undefined
  const sdk = new NodeSDK(prometheus ? { metricReaders: [prometheus.exporter] } : {})
  sdk.start()
  return async () => {
    prometheus?.server.close()
    await sdk.shutdown()
  }
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

declare module 'fastify' {
  interface FastifyRequest {
    telemetrySpan?: Span
  }
}

/** Boundaries of the semantic conventions for HTTP; the SDK's own are made for milliseconds. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/**
 * One server span and one duration measurement per request, named by the route's pattern
 * (`GET /admin/users/:user_id` is written `GET /admin/users/{user_id}`), with `http.route.params.<key>` attributes.
 */
export const telemetryPlugin = fp(async (app: FastifyInstance, options: { service: string }) => {
  const tracer = trace.getTracer(options.service)
  const durations = metrics.getMeter(options.service).createHistogram('http.server.request.duration', {
    description: 'Duration of HTTP requests',
    unit: 's',
    advice: { explicitBucketBoundaries: SECONDS },
  })

  app.addHook('onRequest', (request, _reply, done) => {
    // Part of the caller's trace, where its headers name one (W3C Trace Context).
    const caller = propagation.extract(context.active(), request.headers)
    const kind = SpanKind.SERVER
    const span = tracer.startSpan(spanName(request), { kind, attributes: routeAttributes(request) }, caller)
    // The parameter of an unknown address is the address itself, and strangers write anything into it.
    const params = request.is404 ? {} : ((request.params ?? {}) as Record<string, string>)
    for (const [key, value] of Object.entries(params)) {
      span.setAttribute(`http.route.params.${key}`, value)
    }
    request.telemetrySpan = span
    context.with(trace.setSpan(caller, span), done)
  })

  app.addHook('onError', async (request, _reply, error) => request.telemetrySpan?.recordException(error))

  app.addHook('onResponse', async (request, reply) => {
    const attributes = { ...routeAttributes(request), 'http.response.status_code': reply.statusCode }
    durations.record(reply.elapsedTime / 1000, attributes)
    request.telemetrySpan?.setAttribute('http.response.status_code', reply.statusCode)
    if (reply.statusCode >= 500) request.telemetrySpan?.setStatus({ code: SpanStatusCode.ERROR })
    request.telemetrySpan?.end()
  })
})

const route = (request: FastifyRequest) => request.routeOptions.url?.replaceAll(/:([A-Za-z_]+)/g, '{$1}') ?? 'unknown'

const spanName = (request: FastifyRequest) => `${request.method} ${route(request)}`

const routeAttributes = (request: FastifyRequest): Attributes => ({
  'http.request.method': request.method,
  'http.route': route(request),
})
