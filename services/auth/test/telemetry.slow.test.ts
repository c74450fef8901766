import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { findFreePort } from '@services/common/dev/dev-ports'
import { say } from '@services/common/testing/http/raw-http'
import { type Mailbox, startMailbox } from '@services/common/testing/mailbox'
import { programOf } from '@services/common/testing/run/program'
import { readingOf, readMetricsTable, readScrape } from '@services/common/testing/telemetry/metrics-table'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { VERSION } from '../src/version.ts'
import { processEnvironment } from './process-environment.ts'
import { bearer, createDatabase, linkPath } from './service.ts'
import { json, startUpstream, type Upstream } from './upstream.ts'

const password = 'correct horse'
const email = 'counted@example.com'
/** A JWT that expires in a day. */
const appleSecret = [{ alg: 'ES256' }, { exp: Math.floor(Date.now() / 1000) + 86_400 }, {}]
  .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  .join('.')
let database: Awaited<ReturnType<typeof createDatabase>>
let collector: Upstream
let child: ChildProcess | undefined

beforeEach(async () => {
  ;[database, collector] = await Promise.all([createDatabase(), startUpstream(json({}))])
})

afterEach(async () => {
  if (child && child.exitCode === null && child.signalCode === null) {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  await collector.close()
  await database.drop()
})

/** The service as a process of its own, which is the only way telemetry is switched on. */
async function serve(settings: Record<string, string>) {
  const service = spawn(process.execPath, [programOf('auth', 'main')], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: processEnvironment({
      AUTH_DATABASE_URL: database.url,
      AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
      AUTH_MAILER_AUTOCONFIRM: 'true',
      AUTH_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: '0',
      AUTH_PASSWORD_HASH_MEMORY_KIB: '64',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      ...settings,
    }),
  })
  child = service
  let output = ''
  for (const stream of [service.stdout, service.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
    })
  }
  const processes = Number(settings.AUTH_WEB_CONCURRENCY ?? 1)
  const listening = () => [...output.matchAll(/Server listening at (http:[^"]+)"/g)].map(([, base]) => base)
  await expect.poll(() => listening().length).toBe(processes)
  return {
    base: listening()[0] as string,
    output: () => output,
    async stop() {
      service.kill('SIGTERM')
      expect(await once(service, 'exit')).toEqual([0, null])
    },
  }
}

/** One of everything that is counted. */
async function useEverything(base: string) {
  const post = async (path: string, body: object, headers = {}) => {
    const answer = await fetch(`${base}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: answer.status, body: (await answer.json()) as { refresh_token: string; user: { id: string } } }
  }
  const signIn = (typed: string) => post('/token?grant_type=password', { email, password: typed })
  const refresh = (token: string, headers = {}) =>
    post('/token?grant_type=refresh_token', { refresh_token: token }, headers)
  await post('/signup', { email, password })
  await post('/signup', { email, password })
  await post('/signup', { data: { text: 'x'.repeat(3500) } })
  const { body } = await signIn(password)
  await refresh(body.refresh_token)
  await refresh(body.refresh_token)
  await refresh(body.refresh_token, { 'user-agent': 'elsewhere' })
  // A slow machine makes its way past the first waits, which double.
  let wrong = 0
  while ((await signIn('wrong horse')).status !== 429) wrong++
  expect(wrong).toBeGreaterThanOrEqual(5)
  return { userId: body.user.id, wrong }
}

/** Asks for a provider that cannot be reached, where browsers come to: a 5xx. */
async function askForAwayProvider(base: string): Promise<number> {
  const request = 'GET /authorize?provider=google HTTP/1.1\r\nHost: auth.example\r\nConnection: close\r\n\r\n'
  return (await say(Number(new URL(base).port), request)).status
}

/** A mail of each end and a link of each, once `isCounted` has seen the one before. */
async function useMail(base: string, mailbox: Mailbox, isCounted: (reading: string, times?: number) => Promise<void>) {
  const { authorization } = await bearer({ role: 'service_role' })
  const send = async (path: string, body: object, method = 'POST') =>
    (await (
      await fetch(`${base}${path}`, { method, headers: { authorization }, body: JSON.stringify(body) })
    ).json()) as { id: string }

  await send('/otp', { email: 'by-code@example.com' })
  await isCounted('auth_sign_ups_total{method="otp"')

  await send('/recover', { email })
  expect(await send('/recover', { email })).toMatchObject({ error_code: 'over_email_send_rate_limit' })
  const link = `${base}${linkPath((await mailbox.waitFor(email)).text)}`
  for (let i = 0; i < 2; i++) await fetch(link, { redirect: 'manual' })
  await send('/verify', { type: 'recovery', email, token: '000000' })
  // Both have been exported; the rest of the test cuts connections.
  await isCounted('auth_message_attempts_total{channel="mail",result="sent"', 2)

  await mailbox.answer(550)
  await send('/admin/users', { email: 'unreachable@example.com', email_confirm: true })
  await send('/magiclink', { email: 'unreachable@example.com' })
  await isCounted('auth_messages_total{channel="mail",kind="magic_link",result="failed"')

  await mailbox.answer(451)
  const { id } = await send('/invite', { email: 'invited@example.com' })
  const firstTry = async () => {
    const answer = await fetch(`${base}/admin/messages?user_id=${id}`, { headers: { authorization } })
    return ((await answer.json()) as { messages: { attempts: number }[] }).messages[0]?.attempts
  }
  await expect.poll(firstTry).toBeGreaterThan(0)
  await send(`/admin/users/${id}`, { email_confirm: true }, 'PUT')
  await mailbox.accept()
  await isCounted('auth_messages_total{channel="mail",kind="invite",result="dropped"')
}

test('Prometheus scrapes every metric of the reference, and no other, at / of its own port', async () => {
  const port = await findFreePort()
  const mailbox = await startMailbox()
  const { base, stop, output } = await serve({
    // No standby, so its lag is not a number.
    AUTH_DATABASE_REPLICA_URL: database.url,
    AUTH_SMTP_PORT: String(mailbox.port),
    AUTH_METRICS_ENABLED: 'true',
    AUTH_METRICS_EXPORTER: 'prometheus',
    AUTH_OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
    AUTH_OTEL_EXPORTER_PROMETHEUS_PORT: String(port),
    AUTH_MAILER_TEMPLATES_CONFIRMATION: 'http://127.0.0.1:1/away',
    AUTH_EXTERNAL_GOOGLE_ENABLED: 'true',
    AUTH_EXTERNAL_GOOGLE_CLIENT_ID: 'client',
    AUTH_EXTERNAL_GOOGLE_SECRET: 'secret',
    AUTH_EXTERNAL_GOOGLE_REDIRECT_URI: 'https://auth.example/callback',
    AUTH_EXTERNAL_GOOGLE_URL: 'http://127.0.0.1:1',
    AUTH_EXTERNAL_APPLE_ENABLED: 'true',
    AUTH_EXTERNAL_APPLE_SECRET: appleSecret,
    // Answers without a content type, so each call fails.
    AUTH_HOOK_PASSWORD_VERIFICATION_ATTEMPT_ENABLED: 'true',
    AUTH_HOOK_PASSWORD_VERIFICATION_ATTEMPT_URI: `${collector.url}/hook`,
    AUTH_HOOK_PASSWORD_VERIFICATION_ATTEMPT_UNSIGNED: 'true',
    AUTH_HOOK_PASSWORD_VERIFICATION_ATTEMPT_FAIL_OPEN: 'true',
  })
  const { wrong } = await useEverything(base)
  expect(await askForAwayProvider(base)).toBe(503)
  const scrape = async () => (await fetch(`http://127.0.0.1:${port}/`)).text()
  await useMail(base, mailbox, async (reading, times = 1) => {
    await expect.poll(async () => readingOf(await scrape(), reading)).toBe(times)
  })
  const expected: [string, number][] = [
    ['auth_sign_ups_total{method="password"', 1],
    ['auth_sign_ups_total{method="anonymous"', 1],
    ['auth_sign_ins_total{method="password",result="ok"', 1],
    ['auth_sign_ins_total{method="password",result="invalid_credentials"', wrong],
    ['auth_sign_ins_total{method="password",result="over_request_rate_limit"', 1],
    ['auth_sign_ins_total{method="otp",result="ok"', 1],
    ['auth_sign_ins_total{method="otp",result="otp_expired"', 2],
    ['auth_messages_total{channel="mail",kind="recovery",result="sent"', 1],
    ['auth_messages_total{channel="mail",kind="magic_link",result="failed"', 1],
    ['auth_messages_total{channel="mail",kind="invite",result="dropped"', 1],
    ['auth_refreshes_total{result="ok"', 2],
    ['auth_refresh_repeats_total', 1],
    ['auth_refreshes_total{result="refresh_token_already_used"', 1],
    ['auth_refresh_reuse_detected_total', 1],
    ['auth_large_access_tokens_total', 1],
    ['auth_limits_hit_total{limit="password"', 1],
    ['auth_limits_hit_total{limit="gap-sign_in_link"', 1],
    ['auth_message_attempts_total{channel="mail",result="sent"', 2],
    ['auth_message_attempts_total{channel="sms",result="failed"', 0],
    ['auth_captcha_total{result="refused"', 0],
    ['auth_hook_calls_total{hook="password-verification",result="hook_payload_invalid_content_type"', 1 + wrong],
    ['auth_hash_queue_depth', 0],
    ['auth_sealed_rows{key_id="",known="true"', 0],
    ['auth_queue_jobs{queue="mail",state="waiting"', 0],
    ['auth_queue_dead{queue="mail"', 1],
    ['auth_queue_oldest_age{queue="message-requests",state="waiting"', 0],
    ['db_client_connection_pending_requests', 0],
    [
      'http_server_request_duration_count{http_request_method="POST",http_route="/signup",url_scheme="https",network_protocol_version="1.1",http_response_status_code="200"',
      2,
    ],
  ]
  // Jobs end, and answers are measured, a moment after their effects are visible.
  let figures = ''
  const readings = async () => {
    figures = await scrape()
    return expected.map(([name]) => [name, readingOf(figures, name)])
  }
  await expect.poll(readings).toEqual(expected)
  expect(readingOf(figures, 'auth_apple_secret_remaining')).toBeGreaterThan(86_000)
  expect(figures).toMatch(new RegExp(`target_info\\{.*auth_version="${VERSION}"`))
  // One that can never succeed, and at least one more before that mail was dropped.
  expect(readingOf(figures, 'auth_message_attempts_total{channel="mail",result="failed"')).toBeGreaterThan(1)
  const reference = await readFile(new URL('../../../docs/reference/auth/metrics.md', import.meta.url), 'utf8')
  expect(readScrape(figures)).toEqual(readMetricsTable(reference))
  await stop()
  expect(figures).not.toMatch(/@example|horse/)
  // Neither may the log: it was more than usual, an admin's doings and mails that fail.
  expect(output()).not.toMatch(/@example|horse/)
  await mailbox.close()
})

interface OtlpAttribute {
  key: string
  value: { stringValue?: string; intValue?: number }
}
interface OtlpResource {
  resource: { attributes: OtlpAttribute[] }
}
type OtlpTraces = {
  resourceSpans: (OtlpResource & { scopeSpans: { spans: { name: string; attributes: OtlpAttribute[] }[] }[] })[]
}
type OtlpMetrics = { resourceMetrics: (OtlpResource & { scopeMetrics: { metrics: { name: string }[] }[] })[] }

const received = <Body>(path: string) =>
  collector.requests.filter((request) => request.path === path).map(({ body }) => JSON.parse(body) as Body)

const attribute = (attributes: OtlpAttribute[], key: string) =>
  Object.values(attributes.find((candidate) => candidate.key === key)?.value ?? {})[0]

test('an OTLP collector gets spans named by route, the metrics, and the version with both', async () => {
  const { base, stop, output } = await serve({
    AUTH_TRACING_ENABLED: 'true',
    AUTH_METRICS_ENABLED: 'true',
    DEBUG: 'true',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    OTEL_SERVICE_NAME: 'auth-of-the-test',
  })
  const { userId } = await useEverything(base)
  await fetch(`${base}/nowhere/at-all`)
  await fetch(`${base}/admin/users/${userId}`, { headers: await bearer({ role: 'service_role' }) })
  await stop()

  const traces = received<OtlpTraces>('/v1/traces').flatMap(({ resourceSpans }) => resourceSpans)
  const metrics = received<OtlpMetrics>('/v1/metrics').flatMap(({ resourceMetrics }) => resourceMetrics)
  expect(traces.length).toBeGreaterThan(0)
  expect(metrics.length).toBeGreaterThan(0)
  for (const { resource } of [...traces, ...metrics]) {
    expect(attribute(resource.attributes, 'auth.version')).toBe(VERSION)
    expect(attribute(resource.attributes, 'service.name')).toBe('auth-of-the-test')
    expect(attribute(resource.attributes, 'deployment.environment.name')).toBe('test')
  }
  const spans = traces.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans))
  const named = (name: string) => spans.filter((span) => span.name === name)
  expect(named('POST /signup')).toHaveLength(3)
  expect(attribute(named('POST /signup')[0]?.attributes ?? [], 'http.route')).toBe('/signup')
  expect(named('GET')).toHaveLength(1)
  const [aboutUser] = named('GET /admin/users/{user_id}')
  expect(attribute(aboutUser?.attributes ?? [], 'http.route')).toBe('/admin/users/{user_id}')
  expect(attribute(aboutUser?.attributes ?? [], 'http.route.params.user_id')).toBe(userId)
  const names = metrics.flatMap(({ scopeMetrics }) =>
    scopeMetrics.flatMap((scope) => scope.metrics.map(({ name }) => name)),
  )
  expect(names).toEqual(
    expect.arrayContaining([
      'auth.sign_ups',
      'auth.sign_ins',
      'auth.refreshes',
      'auth.refresh_reuse_detected',
      'auth.refresh_repeats',
      'auth.limits_hit',
      'auth.hash_queue.depth',
      'http.server.request.duration',
    ]),
  )
  const everything = collector.requests.map(({ body }) => body).join('')
  for (const secret of [email, password, 'wrong horse', 'grant_type', 'at-all'])
    expect(everything).not.toContain(secret)
  expect(output()).toMatch(/@opentelemetry|OTLPTraceExporter|items to be sent/)
})

test('while telemetry is off nothing is sent and no port is opened', async () => {
  const port = await findFreePort()
  const { base, stop } = await serve({ AUTH_OTEL_EXPORTER_PROMETHEUS_PORT: String(port) })
  await useEverything(base)
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow()
  await stop()
  expect(collector.requests).toEqual([])
})
