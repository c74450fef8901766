// Spans below those of requests (request-spans.ts): upstreams, programs, SQL and jobs. A span names the kind of work
// and its result, and holds no value: no parameter, path, query, argument or message. Without a parent span there is
// none, so that disabled tracing costs nothing.
import {
  type Attributes,
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapSetter,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { ApiError } from '../errors.ts'

export const isTraced = (): boolean => trace.getActiveSpan()?.isRecording() === true

/** Whether there is a trace to continue: an unsampled one counts, that of an answered request does not. */
function hasTrace(): boolean {
  const span = trace.getActiveSpan()
  return span !== undefined && (span.isRecording() || (span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0)
}

export interface SpanOptions {
  scope: string
  name: string
  kind: SpanKind
  attributes?: Attributes
}

/** Runs `work` in a span below the current one, or without a span if there is none. */
export async function traced<Result>(
  options: SpanOptions,
  work: (span: Span | undefined) => Promise<Result>,
): Promise<Result> {
  return hasTrace() ? inSpan(options, context.active(), work) : work(undefined)
}

async function inSpan<Result>(
  { scope, name, kind, attributes = {} }: SpanOptions,
  parent: Context,
  work: (span: Span) => Promise<Result>,
): Promise<Result> {
  const span = trace.getTracer(scope).startSpan(name, { kind, attributes }, parent)
  try {
    return await context.with(trace.setSpan(parent, span), work, undefined, span)
  } catch (error) {
    recordFailure(span, errorType(error))
    throw error
  } finally {
    span.end()
  }
}

export const outsideTrace = <Result>(work: () => Result): Result => context.with(ROOT_CONTEXT, work)

/** Marks the span as failed; the cause is in the log, whose lines name the trace. */
export function recordFailure(span: Span | undefined, type: string): void {
  span?.setAttribute('error.type', type)
  span?.setStatus({ code: SpanStatusCode.ERROR })
}

/** Code of an error or its cause (SQLSTATE, errno, ours), else its class. */
export function errorType(error: unknown): string {
  if (error instanceof ApiError) return error.code
  const { name, code, cause } = (error ?? {}) as { name?: unknown; code?: unknown; cause?: { code?: unknown } }
  // `fetch` throws a TypeError for every failure and puts the reason into its cause.
  const known = [code, cause?.code].find((text) => typeof text === 'string' && /^\w{1,60}$/.test(text))
  if (typeof known === 'string') return known
  return typeof name === 'string' ? name : 'Error'
}

/** Drops baggage and tracestate, which may hold any text of the caller. */
const onlyTheTrace: TextMapSetter<Record<string, string>> = {
  set: (carrier, key, value) => {
    if (key !== 'baggage' && key !== 'tracestate') carrier[key] = value
  },
}

function traceHeaders(): Record<string, string> {
  const headers: Record<string, string> = {}
  propagation.inject(context.active(), headers, onlyTheTrace)
  return headers
}

export interface UpstreamRequest {
  url: string | URL
  method: string
  /**
   * Whether to send the trace ids, which the caller may have chosen. True only for upstreams that the operator chose;
   * false where a user chose them, or where they must not relate two requests.
   */
  sendsTrace: boolean
}

const NO_HEADERS: Readonly<Record<string, string>> = {}

/**
 * Requests an upstream in a client span. No `url.full`: paths hold keys of gateways and webhooks, queries hold tokens.
 */
export async function tracedRequest<Answer>(
  { url, method, sendsTrace }: UpstreamRequest,
  ask: (headers: Readonly<Record<string, string>>) => Promise<Answer>,
  statusOf: (answer: Answer) => number,
): Promise<Answer> {
  if (!hasTrace()) return ask(NO_HEADERS)
  const { hostname, port, protocol } = new URL(url)
  const attributes = {
    'http.request.method': method,
    'server.address': hostname,
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
    'url.scheme': protocol.slice(0, -1),
  }
  const options = { scope: 'http-client', name: method, kind: SpanKind.CLIENT, attributes }
  return inSpan(options, context.active(), async (span) => {
    const answer = await ask(sendsTrace ? traceHeaders() : NO_HEADERS)
    const status = statusOf(answer)
    span.setAttribute('http.response.status_code', status)
    if (status >= 400) recordFailure(span, String(status))
    return answer
  })
}

export const tracedFetch = (
  url: string,
  init: RequestInit,
  { sendsTrace }: Pick<UpstreamRequest, 'sendsTrace'>,
): Promise<Response> =>
  tracedRequest(
    { url, method: init.method ?? 'GET', sendsTrace },
    (added) => {
      if (added === NO_HEADERS) return fetch(url, init)
      return fetch(url, { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), ...added } })
    },
    ({ status }) => status,
  )

/** A job's data with the trace of the request that sent it. */
interface TracedData {
  trace?: Record<string, string>
}

export const withTrace = (data: object): object => (hasTrace() ? { ...data, trace: traceHeaders() } : data)

export function withoutTrace<Data extends object>(data: Data): Data {
  const { trace: _trace, ...given } = data as Data & TracedData
  return given as unknown as Data
}

export function tracedJob<Result>(
  queue: string,
  { id, data }: { id: string; data: object },
  work: (span: Span) => Promise<Result>,
): Promise<Result> {
  const { trace } = data as TracedData
  const parent = trace ? propagation.extract(ROOT_CONTEXT, trace) : ROOT_CONTEXT
  const attributes = {
    'messaging.system': 'postgresql',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.destination.name': queue,
    'messaging.message.id': id,
  }
  return inSpan({ scope: 'queue', name: `process ${queue}`, kind: SpanKind.CONSUMER, attributes }, parent, work)
}
