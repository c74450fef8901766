import { say } from '@services/common/testing/http/raw-http'
import { type OtlpCollector, startCollector, traceOf } from '@services/common/testing/telemetry/otlp-collector'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { linkPath } from './service.ts'
import { openStage, signUp } from './service-process.ts'
import { json, startUpstream, type Upstream } from './upstream.ts'
import { PROVIDER_EXAMPLES } from './upstreams/provider-examples.ts'
import { startSignInProviders } from './upstreams/sign-in-providers.ts'

const email = 'traced@example.com'
const phone = '+15550001111'
let stage: Awaited<ReturnType<typeof openStage>>
let collector: OtlpCollector
let gateway: Upstream

beforeEach(async () => {
  ;[stage, collector, gateway] = await Promise.all([openStage(), startCollector(), startUpstream(json({}))])
})
afterEach(async () => {
  await stage.end()
  collector.close()
  await gateway.close()
})

const serve = (settings: Record<string, string> = {}) =>
  stage.serve({
    AUTH_TRACING_ENABLED: 'true',
    AUTH_PASSWORD_HASH_MEMORY_KIB: '64',
    AUTH_EXTERNAL_PHONE_ENABLED: 'true',
    AUTH_SMS_PROVIDER: 'http',
    AUTH_SMS_HTTP_URL: `${gateway.url}/secret-of-the-gateway`,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '50',
    ...settings,
  })

test('one trace leads from a request to its SQL and its mail, its SMS or its provider, and holds nothing of a person', async () => {
  const providers = await startSignInProviders(PROVIDER_EXAMPLES)
  const service = await serve(providers.settings('github'))
  const ask = (path: string, init: RequestInit = {}) => fetch(service.base + path, { redirect: 'manual', ...init })

  await signUp(service.base, email)
  const mail = await stage.mailbox.waitFor(email)
  const signUpTrace = await traceOf(collector, 'POST /signup', ['INSERT users', 'process mail', 'SMTP send'])
  expect(signUpTrace.wayTo('INSERT users')).toEqual(['INSERT users', 'POST /signup'])
  expect(signUpTrace.wayTo('SMTP send')).toEqual(['SMTP send', 'process mail', 'POST /signup'])
  expect(signUpTrace.find('SMTP send')).toMatchObject({
    kind: 'client',
    attributes: { 'server.port': stage.mailbox.port, 'auth.message.kind': 'confirmation' },
  })
  // Its token is in the query.
  await ask(linkPath(mail.text))
  await traceOf(collector, 'GET /verify')

  await ask('/otp', { method: 'POST', body: JSON.stringify({ phone }) })
  const sms = await traceOf(collector, 'POST /otp', ['process message-requests', 'process sms', 'POST'])
  expect(sms.wayTo('POST')).toEqual(['POST', 'process sms', 'process message-requests', 'POST /otp'])
  const { traceId, spanId } = sms.find('POST') ?? {}
  expect(gateway.requests.map(({ headers }) => headers.traceparent)).toEqual([`00-${traceId}-${spanId}-01`])

  // The callback goes to the address that the provider knows.
  const asked = await ask('/authorize?provider=github&redirect_to=https://site.example/app')
  const begun = await ask(`/callback${new URL(asked.headers.get('location') ?? '').search}`)
  const query = providers.visit('github', new URL(begun.headers.get('location') ?? ''), { id: '7', email })
  const cookie = begun.headers
    .getSetCookie()
    .map((line) => line.split(';', 1)[0])
    .join('; ')
  await ask(`/callback?${new URLSearchParams(query)}`, { headers: { cookie } })
  const { find } = await traceOf(collector, 'GET /callback', ['POST', 'GET'])
  const told = providers.requests('github').map(({ headers }) => headers.traceparent)
  expect(told.length).toBeGreaterThan(1)
  for (const parent of told) expect(parent).toContain(find('GET /callback')?.traceId)

  service.child.kill('SIGTERM')
  expect(await service.exit).toEqual([0, null])
  const everything = collector.bodies.join('')
  const values = [email, phone.slice(1), 'correct horse', 'secret-of-the-gateway', query.code, query.state, 'token=']
  for (const value of values) expect(everything).not.toContain(value)
  await providers.close()
})

test('every request is one span by the semantic conventions, including one that is refused before all else', async () => {
  const service = await serve()
  const port = Number(new URL(service.base).port)
  await fetch(`${service.base}/signup`, {
    method: 'OPTIONS',
    headers: { origin: 'https://site.example', 'access-control-request-method': 'POST' },
  })
  await fetch(`${service.base}/stranger-text?token=secret`)
  await fetch(`${service.base}/user`)
  const raw = (target: string, hosts: string) => `GET ${target} HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`
  await say(port, raw('/settings', 'Host: a\r\nHost: b\r\n'))
  await say(port, raw('/%E0%A4%A', 'Host: a\r\n'))

  const summary = () =>
    collector
      .spans()
      .filter(({ kind }) => kind === 'server')
      .map(({ name, attributes, isFailed, events }) => {
        const status = attributes['http.response.status_code']
        return [name, status, attributes['http.route'], attributes['url.path'], isFailed, events.length]
      })
  await expect.poll(() => summary().length).toBe(5)
  expect(summary()).toEqual([
    ['OPTIONS', 204, undefined, 'REDACTED', false, 0],
    ['GET', 404, undefined, 'REDACTED', false, 0],
    ['GET /user', 401, '/user', '/user', false, 0],
    ['GET /settings', 400, '/settings', '/settings', false, 0],
    ['GET', 400, undefined, 'REDACTED', false, 0],
  ])
  const resources = JSON.parse(collector.bodies[0] ?? '').resourceSpans[0].resource.attributes
  expect(resources.map(({ key }: { key: string }) => key)).toEqual(
    expect.arrayContaining(['service.name', 'service.version', 'auth.version']),
  )
  expect(collector.bodies.join('')).not.toMatch(/stranger|secret/)
})

test.each(['refuses', 'cannot be reached'])(
  'a collector that %s is one warning a minute, and every line is JSON',
  async (how) => {
    collector.answer(400)
    if (how === 'cannot be reached') collector.close()
    const service = await serve()
    for (let i = 0; i < 3; i++) await fetch(`${service.base}/settings`)
    const lines = () =>
      service
        .output()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
    const warnings = () => lines().filter(({ msg }) => msg === 'telemetry is not exported as configured')
    await expect.poll(() => warnings().length).toBe(1)
    expect(warnings()[0]).toMatchObject({ level: 'warn', reason: expect.stringMatching(/\S/) })
    service.child.kill('SIGTERM')
    await service.exit
    expect(warnings()).toHaveLength(1)
  },
)
