// Receivers of telemetry for tests.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect } from 'vitest'
import { createFarServer } from '../http/far-server.ts'

export interface ReceivedSpan {
  /** Part of the code: `auth`, `database`, `queue`. */
  scope: string
  name: string
  kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  traceId: string
  spanId: string
  /** Absent in the first span of a trace. */
  parentSpanId?: string
  attributes: Record<string, string | number>
  isFailed: boolean
  /** Names of its events. */
  events: string[]
}

export interface OtlpCollector {
  /** Value of `OTEL_EXPORTER_OTLP_ENDPOINT`, with `OTEL_EXPORTER_OTLP_PROTOCOL=http/json`. */
  url: string
  bodies: string[]
  spans(): ReceivedSpan[]
  answer(status: number): void
  close(): void
}

const KINDS = ['internal', 'internal', 'server', 'client', 'producer', 'consumer'] as const

interface OtlpSpan extends Pick<ReceivedSpan, 'name' | 'traceId' | 'spanId' | 'parentSpanId'> {
  kind: number
  attributes: { key: string; value: Record<string, string | number> }[]
  events: { name: string }[]
  status: { code?: number }
}

interface OtlpTraces {
  resourceSpans?: { scopeSpans: { scope: { name: string }; spans: OtlpSpan[] }[] }[]
}

/** Starts an OpenTelemetry collector on a real socket, for OTLP in JSON. */
export async function startCollector(): Promise<OtlpCollector> {
  const bodies: string[] = []
  let status = 200
  const server = createFarServer(async (request, response) => {
    bodies.push(await text(request))
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    spans: () => bodies.flatMap(readSpans),
    answer: (next) => {
      status = next
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

export interface ReceivedTrace {
  find(name: string): ReceivedSpan | undefined
  /** Lists the span names from this one up to the request's. */
  wayTo(name: string): string[]
  /** Span names in the order in which they ended. */
  names: string[]
}

/** Finds the last trace with a server span of this name, once spans of all `names` have arrived. */
export async function traceOf(collector: OtlpCollector, root: string, names: string[] = []): Promise<ReceivedTrace> {
  const ofTrace = () => {
    const { traceId } = collector.spans().findLast(({ name, kind }) => kind === 'server' && name === root) ?? {}
    return collector.spans().filter((span) => span.traceId === traceId)
  }
  await expect.poll(() => ofTrace().map(({ name }) => name)).toEqual(expect.arrayContaining([root, ...names]))
  const spans = ofTrace()
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  const find = (name: string) => spans.find((span) => span.name === name)
  const wayTo = (name: string): string[] => {
    const way: string[] = []
    for (let span = find(name); span; span = byId.get(span.parentSpanId ?? '')) way.push(span.name)
    return way
  }
  return { find, wayTo, names: spans.map(({ name }) => name) }
}

function readSpans(body: string): ReceivedSpan[] {
  const { resourceSpans = [] } = JSON.parse(body) as OtlpTraces
  const scopes = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans)
  return scopes.flatMap(({ scope, spans }) => spans.map((span) => toSpan(scope.name, span)))
}

function toSpan(scope: string, span: OtlpSpan): ReceivedSpan {
  const { name, traceId, spanId, parentSpanId, kind, attributes, events, status } = span
  return {
    scope,
    name,
    kind: KINDS[kind] ?? 'internal',
    traceId,
    spanId,
    ...(parentSpanId ? { parentSpanId } : {}),
    attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0] ?? ''])),
    isFailed: status.code === 2,
    events: events.map((event) => event.name),
  }
}
