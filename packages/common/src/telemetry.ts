import {
  type Attributes,
  context,
  DiagConsoleLogger,
  DiagLogLevel,
  diag,
  metrics,
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
  // Unset exporters make the SDK pick OTLP by itself, so what is switched off must be said.
  env.OTEL_TRACES_EXPORTER = options.tracing ? (env.OTEL_TRACES_EXPORTER ?? 'otlp') : 'none'
  env.OTEL_METRICS_EXPORTER = options.metrics === 'opentelemetry' ? (env.OTEL_METRICS_EXPORTER ?? 'otlp') : 'none'
  env.OTEL_LOGS_EXPORTER ??= 'none'
  env.OTEL_SERVICE_NAME ??= options.service
  env.OTEL_RESOURCE_ATTRIBUTES = [env.OTEL_RESOURCE_ATTRIBUTES, `${options.service}.version=${options.version}`]
    .filter(Boolean)
    .join(',')
  const sdk = new NodeSDK(
    options.metrics === 'prometheus' ? { metricReaders: [await openPrometheus(options.prometheus)] } : {},
  )
  sdk.start()
  return () => sdk.shutdown()
}

async function openPrometheus({ host, port }: { host: string; port: number }) {
  const { PrometheusExporter } = await import('@opentelemetry/exporter-prometheus')
  const exporter = new PrometheusExporter({ host, port, endpoint: '/', preventServerStart: true })
  await exporter.startServer()
  return exporter
}

declare module 'fastify' {
  interface FastifyRequest {
    telemetrySpan?: Span
  }
}

/**
 * One server span and one duration measurement per request, named by the route's pattern
 * (`GET /admin/users/:user_id` is written `GET /admin/users/{user_id}`), with `http.route.params.<key>` attributes.
 */
export const telemetryPlugin = fp(async (app: FastifyInstance, options: { service: string }) => {
  const tracer = trace.getTracer(options.service)
  const durations = metrics.getMeter(options.service).createHistogram('http.server.request.duration', { unit: 's' })

  app.addHook('onRequest', (request, _reply, done) => {
    const span = tracer.startSpan(spanName(request), { kind: SpanKind.SERVER, attributes: routeAttributes(request) })
    for (const [key, value] of Object.entries((request.params ?? {}) as Record<string, string>)) {
      span.setAttribute(`http.route.params.${key}`, value)
    }
    request.telemetrySpan = span
    context.with(trace.setSpan(context.active(), span), done)
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
