// Spans and durations of requests. An attribute of a metric has few values, and none holds a caller's own text. Spans
// below a request's: spans.ts. Tests: test/telemetry.slow.test.ts of each service.
import {
  type Attributes,
  type Context,
  context,
  metrics,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { errorType } from '../telemetry/spans.ts'

type FrameworkErrors = (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => void

export interface RequestTelemetry {
  /** Observes Fastify's `frameworkErrors`, which answers before any hook. */
  observed(answer: FrameworkErrors): FrameworkErrors
  watch(app: FastifyInstance): void
}

/** Boundaries of the semantic conventions for HTTP; the SDK's are for milliseconds. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/**
 * Records a server span and a duration per request, by the semantic conventions for HTTP. The span is named after the
 * route (`GET /admin/users/{user_id}`) and has `http.route.params.<key>` attributes. `externalUrl` gives the callers'
 * scheme.
 */
export function openRequestTelemetry(
  service: string,
  externalUrl: string,
  { tracing, metrics: exported }: { tracing: boolean; metrics: unknown },
): RequestTelemetry {
  if (!tracing && !exported) return { observed: (answer) => answer, watch: () => {} }
  const tracer = trace.getTracer(service)
  const durations = metrics.getMeter(service).createHistogram('http.server.request.duration', {
    description: 'Duration of HTTP requests',
    unit: 's',
    advice: { explicitBucketBoundaries: SECONDS },
  })
  const scheme = new URL(externalUrl).protocol.slice(0, -1)
  const underWay = new WeakMap<FastifyRequest, { within: Context; error?: Error }>()

  const begin = (request: FastifyRequest, reply: FastifyReply): Context => {
    const startedAt = performance.now()
    // Continues the caller's trace, if its headers name one (W3C Trace Context).
    const caller = propagation.extract(ROOT_CONTEXT, request.headers)
    const measured = measuredAttributes(request, scheme)
    const attributes = tracing ? { ...measured, ...describe(request) } : measured
    const span = tracer.startSpan(nameOf(request), { kind: SpanKind.SERVER, attributes }, caller)
    const within = trace.setSpan(caller, span)
    underWay.set(request, { within })
    reply.raw.once('finish', () => {
      const seconds = (performance.now() - startedAt) / 1000
      durations.record(seconds, { ...measured, ...resultOf(reply) })
    })
    // Fastify does not call `onResponse` when a client disconnects early.
    for (const event of ['finish', 'close']) {
      reply.raw.once(event, () => {
        const observed = underWay.get(request)
        if (underWay.delete(request)) end(span, resultOf(reply), observed?.error)
      })
    }
    return within
  }

  return {
    observed: (answer) => (error, request, reply) => {
      context.with(begin(request, reply), () => answer(error, request, reply))
    },
    watch(app) {
      app.addHook('onRequest', (request, reply, done) => context.with(begin(request, reply), done))
      // The body's events belong to the connection and carry no request context.
      app.addHook('preValidation', (request, _reply, done) => {
        context.with(underWay.get(request)?.within ?? context.active(), done)
      })
      app.addHook('onError', (request, _reply, error, done) => {
        const observed = underWay.get(request)
        if (observed) observed.error = error
        done()
      })
    },
  }
}

/** Ends a request's span; 4xx is no failure. The exception event has only the type: messages and stacks quote. */
function end(span: Span, result: Attributes, error: Error | undefined): void {
  span.setAttributes(result)
  if (result['error.type'] !== undefined) {
    span.setStatus({ code: SpanStatusCode.ERROR })
    if (error) span.addEvent('exception', { 'exception.type': errorType(error) })
  }
  span.end()
}

function resultOf({ raw, statusCode }: FastifyReply): Attributes {
  if (!raw.headersSent) return {}
  return {
    'http.response.status_code': statusCode,
    ...(statusCode >= 500 ? { 'error.type': String(statusCode) } : {}),
  }
}

/** Pattern of the request's route; none for preflights and unknown paths, where `*` is any text of the caller. */
function routeOf({ is404, routeOptions }: FastifyRequest): string | undefined {
  const { url } = routeOptions
  return is404 || url === undefined || url === '*' ? undefined : url.replaceAll(/:([A-Za-z_]+)/g, '{$1}')
}

function nameOf(request: FastifyRequest): string {
  const route = routeOf(request)
  return route === undefined ? request.method : `${request.method} ${route}`
}

/** Attributes of spans and metrics; each has few values, whatever callers send. */
function measuredAttributes(request: FastifyRequest, scheme: string): Attributes {
  const route = routeOf(request)
  return {
    'http.request.method': request.method,
    ...(route === undefined ? {} : { 'http.route': route }),
    'url.scheme': scheme,
    'network.protocol.version': request.raw.httpVersion,
  }
}

const LONGEST_TEXT = 255

/**
 * Attributes only of spans, not of metrics: no client address, no query. A route parameter may hold any text of the
 * caller.
 */
function describe(request: FastifyRequest): Attributes {
  const { hostname, port, headers } = request
  const route = routeOf(request)
  const attributes: Attributes = { 'url.path': pathOf(request, route) }
  if (hostname) attributes['server.address'] = hostname.slice(0, LONGEST_TEXT)
  if (port) attributes['server.port'] = port
  if (headers['user-agent']) attributes['user_agent.original'] = headers['user-agent'].slice(0, LONGEST_TEXT)
  if (route === undefined || route.includes('*')) return attributes
  for (const [key, value] of Object.entries((request.params ?? {}) as Record<string, string>)) {
    attributes[`http.route.params.${key}`] = value
  }
  return attributes
}

/** Requested path, if it has no part that the caller may choose. */
function pathOf({ originalUrl }: FastifyRequest, route: string | undefined): string {
  if (route === undefined || /[{*]/.test(route)) return 'REDACTED'
  const [path = ''] = originalUrl.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)
  return path
}
