import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { context, diag, metrics, propagation, trace } from '@opentelemetry/api'
import Fastify from 'fastify'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, inject, test, vi } from 'vitest'
import { batchLoads } from '../concurrency/batch-loads.ts'
import { openDatabase } from '../database/pool.ts'
import { summarize } from '../database/statement-spans.ts'
import { openRequestTelemetry } from '../http/request-spans.ts'
import { openQueue, type Queue } from '../queue/queue.ts'
import { pooledAddress } from '../testing/database/pooled.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { say } from '../testing/http/raw-http.ts'
import { type OtlpCollector, startCollector, traceOf } from '../testing/telemetry/otlp-collector.ts'
import { createLogger } from './logger.ts'
import { tracedFetch } from './spans.ts'
import { startTelemetry } from './start-sdk.ts'

const log = createLogger({ name: 'test', level: 'fatal' })
const CALLER = '0af7651916cd43dd8448eb211c80319c'
const sentBy = (flags: '00' | '01') => ({
  traceparent: `00-${CALLER}-b7ad6b7169203331-${flags}`,
  tracestate: 'vendor=stranger',
  baggage: 'user=stranger',
})

let collector: OtlpCollector
let database: Awaited<ReturnType<typeof cloneTemplate>>
let opened: ReturnType<typeof openDatabase>
let queue: Queue
let upstreamUrl: string
let asked: IncomingHttpHeaders[] = []
const upstream = createServer(({ headers }, response) => {
  asked.push(headers)
  response.writeHead(404).end()
})
let stopTelemetry: () => Promise<void>

beforeAll(async () => {
  ;[collector, database] = await Promise.all([
    startCollector(),
    cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_tracing`, async () => {}),
  ])
  await once(upstream.listen(0, '127.0.0.1'), 'listening')
  upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url)
  vi.stubEnv('OTEL_EXPORTER_OTLP_PROTOCOL', 'http/json')
  vi.stubEnv('OTEL_BSP_SCHEDULE_DELAY', '20')
  const prometheus = { host: '127.0.0.1', port: 0 }
  const how = { service: 'test', version: '1.2.3', tracing: true, metrics: false, prometheus, debug: false } as const
  stopTelemetry = await startTelemetry({ ...how, log })
  opened = openDatabase({
    ...pooledAddress(database.url),
    maxPoolSize: 2,
    applicationName: 'test',
    log,
    isTraced: true,
  })
  const definition = { retryLimit: 3, retryDelaySeconds: 1, retryDelayMaxSeconds: 1, expireInSeconds: 60 }
  queue = await openQueue({
    url: database.url,
    schema: 'jobs',
    applicationName: 'test',
    queues: ['letters', 'bills'].map((name) => ({ ...definition, name, heartbeatSeconds: 10 })),
    log,
    migrate: true,
    supervise: false,
  })
})

afterAll(async () => {
  await queue.stop(1_000)
  await opened.close()
  await stopTelemetry()
  for (const api of [trace, context, propagation, metrics, diag]) api.disable()
  vi.unstubAllEnvs()
  collector.close()
  upstream.close()
  await database.drop()
})

// Each test waits for all its spans, so none arrives in the next.
beforeEach(() => {
  collector.bodies.length = 0
})

/** Requests a service that runs `work`, through a real socket. */
async function request(work: () => Promise<unknown>, headers: Record<string, string> = {}) {
  const app = Fastify()
  openRequestTelemetry('test', 'https://test.example/base', { tracing: true, metrics: false }).watch(app)
  app.post('/tasks/:id', async () => {
    await work()
    return {}
  })
  const base = await app.listen({ host: '127.0.0.1', port: 0 })
  // The body's events carry no request context.
  const init = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json', ...headers } }
  const { status } = await fetch(`${base}/tasks/7?code=secret`, init)
  await app.close()
  return status
}

test("one trace leads from a request with a body to its SQL, its job and the job's upstream", async () => {
  asked = []
  const seen: object[] = []
  await queue.work<{ to: string }>('letters', { concurrency: 1 }, async ({ data }) => {
    seen.push(data)
    await tracedFetch(`${upstreamUrl}/key-in-path?key=secret`, { headers: { accept: 'a' } }, { sendsTrace: true })
  })
  const status = await request(() =>
    opened.db.transaction().execute(async (trx) => {
      await sql`select ${'a parameter'}::text`.execute(trx)
      await queue.send(trx, 'letters', { to: 'stranger' })
    }),
  )
  expect(status).toBe(200)
  // The job's span ends last.
  const { find, names } = await traceOf(collector, 'POST /tasks/{id}', ['process letters'])
  expect(names).toHaveLength(7)
  const [server, job, letter] = ['POST /tasks/{id}', 'process letters', 'GET'].map(find)
  expect(server?.attributes).toMatchObject({
    'http.request.method': 'POST',
    'http.route': '/tasks/{id}',
    'http.route.params.id': '7',
    'http.response.status_code': 200,
    'url.path': 'REDACTED',
    'url.scheme': 'https',
    'server.address': '127.0.0.1',
    'server.port': expect.any(Number),
    'user_agent.original': 'node',
    'network.protocol.version': '1.1',
  })
  for (const name of ['BEGIN', 'SELECT', 'COMMIT']) {
    expect(find(name)).toMatchObject({
      kind: 'client',
      parentSpanId: server?.spanId,
      attributes: { 'db.system.name': 'postgresql', 'db.query.summary': name, 'server.address': '127.0.0.1' },
    })
  }
  const isMessage = { 'messaging.destination.name': 'letters', 'messaging.operation.type': 'process' }
  expect(job).toMatchObject({ kind: 'consumer', parentSpanId: server?.spanId, attributes: isMessage })
  expect(letter).toMatchObject({ kind: 'client', parentSpanId: job?.spanId, isFailed: true })
  expect(letter?.attributes).toMatchObject({ 'http.response.status_code': 404, 'error.type': '404' })
  expect(asked).toMatchObject([{ accept: 'a', traceparent: `00-${letter?.traceId}-${letter?.spanId}-01` }])
  // The handler gets what was sent.
  expect(seen).toEqual([{ to: 'stranger' }])
  expect(collector.bodies.join('')).not.toMatch(/a parameter|stranger|secret|key-in-path/)
})

test.each([
  ['/base/tasks?code=secret', '/base/tasks'],
  ['http://stranger/tasks?code=secret', '/tasks'],
  ['/tasks/secret-text', 'REDACTED'],
  ['/none/secret-text', 'REDACTED'],
])('the path of %s is recorded as %s', async (asked, held) => {
  const app = Fastify({ rewriteUrl: ({ url = '/' }) => url.replace(/^\/base/, '') })
  openRequestTelemetry('test', 'https://test.example/base', { tracing: true, metrics: false }).watch(app)
  for (const path of ['/tasks', '/tasks/:id']) app.get(path, async () => ({}))
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const before = collector.spans().length
  await say(Number(port), `GET ${asked} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
  await expect.poll(() => collector.spans().length).toBe(before + 1)
  expect(collector.spans().at(-1)?.attributes).toMatchObject({ 'url.path': held, 'url.scheme': 'https' })
  await app.close()
})

test('an unsampled trace continues, and no upstream gets its baggage', async () => {
  for (const flags of ['00', '01'] as const) {
    asked = []
    const ask = (sendsTrace: boolean) => tracedFetch(upstreamUrl, {}, { sendsTrace })
    await request(() => Promise.all([ask(true), ask(false)]), sentBy(flags))
    const told = asked.filter(({ traceparent }) => traceparent !== undefined)
    expect(told).toHaveLength(1)
    expect(told[0]?.traceparent).toMatch(new RegExp(`^00-${CALLER}-[0-9a-f]{16}-${flags}$`))
    for (const headers of asked) expect([headers.tracestate, headers.baggage]).toEqual([undefined, undefined])
  }
  await traceOf(collector, 'POST /tasks/{id}')
})

test('a failed job has its error type; a job without a trace runs', async () => {
  const attempts: number[] = []
  await queue.work('bills', { concurrency: 1, pollSeconds: 1 }, async ({ retryCount }) => {
    attempts.push(retryCount)
    if (retryCount === 0) throw new TypeError('stranger words')
  })
  await opened.db.transaction().execute((trx) => queue.send(trx, 'bills', {}))
  await expect.poll(() => attempts).toEqual([0, 1])
  const jobs = () => collector.spans().filter(({ name }) => name === 'process bills')
  await expect.poll(() => jobs().length).toBe(2)
  expect(
    jobs().map(({ isFailed, attributes, parentSpanId }) => [isFailed, attributes['error.type'], parentSpanId]),
  ).toEqual([
    [true, 'TypeError', undefined],
    [false, undefined, undefined],
  ])
  expect(collector.bodies.join('')).not.toContain('stranger words')
})

test('a refused statement has its SQLSTATE, and a statement outside requests has no span', async () => {
  await sql`select 1 as silent`.execute(opened.db)
  const before = collector.spans().filter(({ scope }) => scope === 'database').length
  const status = await request(() => opened.pool.query('select $1::int', ['no number']))
  expect(status).toBe(500)
  const { find } = await traceOf(collector, 'POST /tasks/{id}', ['SELECT'])
  expect(find('SELECT')).toMatchObject({
    isFailed: true,
    attributes: { 'error.type': '22P02', 'db.response.status_code': '22P02' },
  })
  expect(find('POST /tasks/{id}')).toMatchObject({ isFailed: true, events: ['exception'] })
  // PostgreSQL quotes the value in its message, and a stack begins with the message.
  expect(collector.bodies.join('')).not.toContain('no number')
  expect(collector.spans().filter(({ scope }) => scope === 'database')).toHaveLength(before + 1)
})

test('an unreachable upstream has the code of the failure, not the class of fetch', async () => {
  const closed = createServer()
  await once(closed.listen(0, '127.0.0.1'), 'listening')
  const { port } = closed.address() as AddressInfo
  closed.close()
  await request(() => tracedFetch(`http://127.0.0.1:${port}`, {}, { sendsTrace: false }))
  const { find } = await traceOf(collector, 'POST /tasks/{id}', ['GET'])
  expect(find('GET')?.attributes['error.type']).toBe('ECONNREFUSED')
})

test('a statement of several requests belongs to no trace; one of a single request to its own', async () => {
  const shared: number[] = []
  const double = batchLoads(async (keys: readonly number[]) => {
    shared.push(keys.length)
    await opened.pool.query('select 1 from pg_class limit 1')
    return keys
  }, 3)
  const statements = () => collector.spans().filter(({ name }) => name === 'SELECT pg_class')
  await request(() => Promise.all([1, 2, 3, 4].map(double)))
  const { wayTo } = await traceOf(collector, 'POST /tasks/{id}', ['SELECT pg_class'])
  expect(shared).toEqual([3, 1])
  expect(wayTo('SELECT pg_class')).toEqual(['SELECT pg_class', 'POST /tasks/{id}'])
  expect(statements()).toHaveLength(1)
})

test.each([
  ['select "id" from "users" where "email" = $1', 'SELECT users'],
  ['insert into "sessions" ("id") values ($1) on conflict do update set "id" = $2', 'INSERT sessions'],
  ['update "a"."b" set "x" = (select max(y) from c)', 'UPDATE a.b SELECT c'],
  ['with due as (select id from d for update skip locked) delete from e using due', 'SELECT d DELETE e'],
  [`select 'x from stranger' -- from stranger\n from f join g on true`, 'SELECT f g'],
  ['select exists (select from h) from unnest($1)', 'SELECT SELECT h'],
  ['commit', 'COMMIT'],
  ["select $$ from stranger $$, $a$ join $$ stranger $a$, E'\\' from stranger ', '' from a", 'SELECT a'],
  ['select /* from stranger */ "it\'s" from "b\'s"', "SELECT b's"],
  ['update users set x = 1 where x is distinct from p.providers', 'UPDATE users'],
  ['select extract(epoch from created_at), trim(both from name) from only a', 'SELECT a'],
])('%s is summarized as %s', (text, summary) => {
  expect(summarize(text)).toBe(summary)
})
