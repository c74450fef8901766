import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { context, diag, metrics, propagation, trace } from '@opentelemetry/api'
import Fastify from 'fastify'
import { expect, onTestFinished, test, vi } from 'vitest'
import { findFreePort } from '../dev/dev-ports.ts'
import { openRequestTelemetry } from '../http/request-spans.ts'
import { createLogger, type Logger } from './logger.ts'
import { startTelemetry, telemetryLog } from './start-sdk.ts'

const log = createLogger({ name: 'test', level: 'fatal' })

/** Switches off what would otherwise stay with the process, which runs other files after this one. */
function forgetTelemetry() {
  forgetApis()
  vi.unstubAllEnvs()
}

function forgetApis() {
  for (const api of [trace, context, propagation, metrics, diag]) api.disable()
}

test.each(['os', 'none'])(
  'traces tell version and name also with OTEL_NODE_RESOURCE_DETECTORS=%s',
  async (detectors) => {
    const received: Buffer[] = []
    const collector = createServer((request, response) => {
      request.on('data', (chunk) => received.push(chunk))
      request.on('end', () => response.end())
    })
    onTestFinished(() => {
      forgetTelemetry()
      collector.close()
    })
    await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
    vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', `http://127.0.0.1:${(collector.address() as AddressInfo).port}`)
    vi.stubEnv('OTEL_NODE_RESOURCE_DETECTORS', detectors)
    vi.stubEnv('OTEL_SERVICE_NAME', undefined)
    vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'service.name=sign-in')
    const prometheus = { host: '127.0.0.1', port: 0 }
    const stop = await startTelemetry({
      service: 'auth',
      version: '9.8.7',
      tracing: true,
      metrics: false,
      prometheus,
      debug: false,
      log,
    })
    trace.getTracer('test').startSpan('a span').end()
    await stop()
    const traces = Buffer.concat(received).toString('latin1')
    for (const text of ['a span', 'auth.version', 'service.version', '9.8.7', 'sign-in']) expect(traces).toContain(text)
  },
)

test('Prometheus reads request durations by route on its own port; traces name routes, parameters and the version, and join those of callers', async () => {
  const received: Buffer[] = []
  const collector = createServer((request, response) => {
    request.on('data', (chunk) => received.push(chunk))
    request.on('end', () => response.end())
  })
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', `http://127.0.0.1:${(collector.address() as AddressInfo).port}`)
  onTestFinished(() => {
    forgetTelemetry()
    collector.close()
  })
  const port = await findFreePort()
  const stop = await startTelemetry({
    service: 'auth',
    version: '9.8.7',
    tracing: true,
    metrics: 'prometheus',
    prometheus: { host: '127.0.0.1', port },
    debug: false,
    log,
  })
  const app = Fastify()
  openRequestTelemetry('auth', 'https://auth.example', { tracing: true, metrics: 'prometheus' }).watch(app)
  app.get('/admin/users/:user_id', async () => ({}))
  await app.inject('/admin/users/42')
  const caller = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
  await app.inject({ url: '/joined', headers: { traceparent: `00-${caller.traceId}-${caller.spanId}-01` } })

  for (const path of ['/', '/metrics']) {
    const figures = await (await fetch(`http://127.0.0.1:${port}${path}`)).text()
    expect(figures).toMatch(/http_route="\/admin\/users\/\{user_id\}",[^}]*http_response_status_code="200"/)
    expect(figures).toContain('le="0.005"')
    expect(figures).not.toContain('process_command')
  }
  await app.close()
  await stop()
  const traces = Buffer.concat(received).toString('latin1')
  for (const text of ['GET /admin/users/{user_id}', 'http.route.params.user_id', '42', 'auth.version', '9.8.7']) {
    expect(traces).toContain(text)
  }
  for (const id of Object.values(caller)) expect(traces).toContain(Buffer.from(id, 'hex').toString('latin1'))
})

test('OTEL_LOG_LEVEL applies at every start in a process, and nothing goes to the console', async () => {
  onTestFinished(forgetTelemetry)
  vi.stubEnv('OTEL_LOG_LEVEL', 'debug')
  vi.stubEnv('OTEL_TRACES_EXPORTER', 'none')
  const consoles = (['debug', 'info', 'log', 'warn', 'error'] as const).map((name) => vi.spyOn(console, name))
  onTestFinished(() => {
    for (const spy of consoles) spy.mockRestore()
  })
  for (let start = 0; start < 2; start++) {
    const lines: string[] = []
    const write = ({ detail }: { detail?: string }) => void lines.push(detail ?? '')
    const written = { info: write, warn: write } as unknown as Logger
    const prometheus = { host: '127.0.0.1', port: 0 }
    const how = { service: 'auth', version: '1', tracing: true, metrics: false, prometheus, debug: false } as const
    const stop = await startTelemetry({ ...how, log: written })
    diag.debug('a detail')
    await stop()
    expect(lines.join('')).toContain('a detail')
    forgetApis()
  }
  for (const spy of consoles) expect(spy).not.toHaveBeenCalled()
})

function openLog() {
  const lines: { level: string; fields: object; message: string }[] = []
  const at = (level: string) => (fields: object, message: string) => void lines.push({ level, fields, message })
  let ms = 0
  const sdk = telemetryLog({ info: at('info'), warn: at('warn') } as unknown as Logger, () => ms)
  return { sdk, lines, wait: (more: number) => (ms += more) }
}

test('failed exports are one warning a minute, with the number of unreported ones', () => {
  const { sdk, lines, wait } = openLog()
  const failure = JSON.stringify({ name: 'Error', code: 'ECONNREFUSED', message: 'connect', stack: 'Error\n at x' })
  for (let i = 0; i < 10; i++) {
    sdk.error(failure)
    wait(5_000)
  }
  expect(lines).toHaveLength(1)
  wait(10_000)
  sdk.warn('later')
  const message = 'telemetry is not exported as configured'
  expect(lines).toEqual([
    { level: 'warn', fields: { reason: 'ECONNREFUSED connect', unreported: 0 }, message },
    { level: 'warn', fields: { reason: 'later', unreported: 9 }, message },
  ])
})

test('a detail is logged without the batches that the SDK attaches', () => {
  const { sdk, lines } = openLog()
  sdk.debug('@opentelemetry/exporter', 'items to be sent', [{ attributes: { secret: 'a' } }])
  expect(lines.map(({ fields }) => fields)).toEqual([{ detail: '@opentelemetry/exporter items to be sent' }])
})
