import { migrateAll } from '@services/common/process/service-database'
import { createLogger } from '@services/common/telemetry/logger'
import { createTestClock, type TestClock } from '@services/common/testing/clock'
import { pooledSettings } from '@services/common/testing/database/pooled'
import { cloneTemplate } from '@services/common/testing/database/template-database'
import { answerHolder, type HoldAnswer } from '@services/common/testing/http/held-answers'
import { type Mailbox, startMailbox } from '@services/common/testing/mailbox'
import { PATIENCE_MS } from '@services/common/testing/patience'
import { perFile } from '@services/common/testing/per-file'
import type { FastifyInstance, InjectOptions } from 'fastify'
import { SignJWT } from 'jose'
import { test as base, expect, inject } from 'vitest'
import { createApp } from '../src/app.ts'
import { type Config, readConfig } from '../src/config.ts'
import { type Deps, makeDeps, openDeps, SCHEMA } from '../src/deps.ts'
import { startWorker } from '../src/worker.ts'
import { withPatientHooks } from './upstreams/patient-hooks.ts'

export const SECRET = 'a-secret-of-the-tests-with-32-bytes-or-more'

export interface TestService {
  app: FastifyInstance
  deps: Deps
  clock: TestClock
  mailbox: Mailbox
  post(url: string, body?: object, headers?: Record<string, string>): Promise<Answer>
  get(url: string, headers?: Record<string, string>): Promise<Answer>
  put(url: string, body: object, headers?: Record<string, string>): Promise<Answer>
  delete(url: string, headers?: Record<string, string>): Promise<Answer>
  /** Posts a form, as a page does. */
  submit(url: string, form: Record<string, string>, headers?: Record<string, string>): Promise<Answer>
  /** All of these are one browser, with the cookies it was given; this is another one, without. */
  otherBrowser(): Pick<TestService, 'get' | 'post' | 'submit'>
  /** Authorization of an admin token made from the secret. */
  admin: { authorization: string }
  /** Waits until no message is requested or on its way, before the clock advances or messages are counted. */
  settled(): Promise<void>
  /** A new user, made by an admin, with the session of a first sign-in: a fifth of the work of `signedUp`. */
  signedIn(email?: string, password?: string): Promise<SignedIn>
  /** The same by sign-up, mail and link, for tests of one of these. Two sessions: the link's, and the returned one. */
  signedUp(email?: string, password?: string): Promise<SignedIn>
  /** Shares database, mailbox and worker, which keeps its own settings: a quarter of the work of another service. */
  with(settings: Record<string, string>): Promise<TestService>
  /** The same a day later, once all messages have left: no limit counts an earlier request. */
  onAnotherDay(settings: Record<string, string>): Promise<TestService>
  /** Stops delivery here. */
  stopWorker(): Promise<void>
  close(): Promise<void>
}

export interface Answer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: bodies are what the test says they are
  body: any
  text: string
  headers: Record<string, unknown>
}

export interface SignedIn {
  accessToken: string
  refreshToken: string
  userId: string
  auth: { authorization: string }
}

/** The database of one test service: a clone of the migrated template. */
export async function createDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  return cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_auth`, migrateDatabase)
}

/** Applies the migrations to an empty database. */
export const migrateDatabase = (url: string): Promise<void> =>
  migrateAll(SCHEMA, settingsFor(url), createLogger({ name: 'test', level: 'error' }))

/** Settings of a test service; passwords are hashed cheaply, nothing is logged. */
function settingsFor(databaseUrl: string, settings: Record<string, string> = {}): Config {
  const given = {
    AUTH_SITE_URL: 'https://site.example',
    AUTH_API_EXTERNAL_URL: 'https://auth.example',
    AUTH_DATABASE_URL: databaseUrl,
    AUTH_JWT_SECRET: SECRET,
    AUTH_SMTP_HOST: '127.0.0.1',
    AUTH_SMTP_PORT: '1',
    AUTH_SMTP_ADMIN_EMAIL: 'auth@site.example',
    AUTH_JWT_AUDIENCES: 'other',
    // Without hosted pages an enabled OAuth server needs a consent page.
    AUTH_OAUTH_SERVER_AUTHORIZATION_PATH: '/consent',
    AUTH_MIGRATE_ON_START: 'false',
    AUTH_PASSWORD_HASH_MEMORY_KIB: '64',
    AUTH_LOG_LEVEL: 'fatal',
    // Each connection costs a process of PostgreSQL; two are enough for a race.
    AUTH_DB_MAX_POOL_SIZE: '4',
    // A message after another would wait 50 ms for its turn.
    AUTH_DB_NOTIFY: 'each',
    AUTH_API_MAX_REQUEST_DURATION: `${PATIENCE_MS / 1000}`,
    ...settings,
  }
  return readConfig(pooledSettings('AUTH_', withPatientHooks(given))).config
}

/** Two slots of a queue are enough for a race, and one domain has half of those for messages. */
const WORKER = { messages: 4, requests: 2, templateWaitMs: PATIENCE_MS }

/**
 * The whole service on a database of its own unless `settings` names one, with a real mail server and a clock in the
 * test's hand. With `machineNow` it keeps time as in production: by this clock of its machine and the database's.
 */
export async function startTestService(
  settings: Record<string, string> = {},
  clock = createTestClock(),
  machineNow?: () => Date,
): Promise<TestService> {
  await using started = new AsyncDisposableStack()
  const { AUTH_DATABASE_URL: url } = settings
  const [database, mailbox] = await Promise.all([
    url ? { url, drop: async () => {} } : createDatabase(),
    startMailbox(),
  ])
  started.defer(database.drop)
  started.defer(mailbox.close)
  const read = (more: Record<string, string> = {}) => {
    const smtp = { AUTH_SMTP_HOST: mailbox.host, AUTH_SMTP_PORT: String(mailbox.port) }
    const config = settingsFor(database.url, { ...smtp, ...settings, ...more })
    return { config, log: createLogger({ name: 'auth', ...config.log }) }
  }
  const { config, log } = read()
  const time = machineNow ? { machineNow } : { now: clock.now }
  const overrides = { ...time, delayMs: () => 0, connectWithinMs: PATIENCE_MS, statementWithinMs: PATIENCE_MS }
  const deps = await openDeps(config, log, overrides)
  started.defer(deps.close)
  const app = await createApp(deps)
  const stopWorker = config.server.workersEnabled ? await startWorker(deps, WORKER) : async () => {}
  started.defer(stopWorker)
  started.defer(() => app.close())
  const all = started.move()
  const parts = { clock, mailbox, admin: await bearer({ role: 'service_role' }), cookies: new Map<string, string>() }
  return {
    ...parts,
    ...doorOf(app, parts),
    deps,
    stopWorker,
    async settled() {
      const unfinished = async () => {
        const figures = await deps.queue.figures()
        return figures.filter(
          ({ waiting, scheduled, running, retrying }) => waiting + scheduled + running + retrying > 0,
        )
      }
      await expect.poll(unfinished).toEqual([])
    },
    async with(more) {
      const { config, log } = read(more)
      const others = await makeDeps(config, log, deps, { now: deps.now, delayMs: deps.delayMs })
      const app = await createApp(others)
      return { ...this, ...doorOf(app, parts), deps: others, close: () => app.close() }
    },
    async onAnotherDay(this: TestService, more) {
      await this.settled()
      clock.advance({ seconds: 86_401 })
      return this.with(more)
    },
    close: () => all.disposeAsync(),
  }
}

/** nginx keeps 4 KiB for the status and headers of an answer by default, and answers 502 to larger ones. */
const MAX_HEADER_BYTES = 4000

const headerBytes = (headers: Record<string, unknown>) =>
  Object.entries(headers)
    .flatMap(([name, value]) => [value].flat().map((each) => `${name}: ${each}\r\n`))
    .join('').length

/** Holds each answer to the document that the service serves; they differ in nothing that matters here. */
let holdAnswer: HoldAnswer | undefined

/** Members of an app that tests call. */
function doorOf(
  app: FastifyInstance,
  parts: Pick<TestService, 'mailbox' | 'admin'> & { cookies: Map<string, string> },
) {
  const { mailbox, admin } = parts
  const call = async ({ headers, ...options }: InjectOptions): Promise<Answer> => {
    const cookie = [...parts.cookies].map((pair) => pair.join('=')).join('; ')
    const usual = { host: 'auth.example', ...(cookie && { cookie }) }
    const response = await app.inject({ ...options, headers: { ...usual, ...headers } })
    holdAnswer ??= await answerHolder(app)
    holdAnswer(String(options.method), String(options.url), {
      status: response.statusCode,
      header: (name) => response.headers[name]?.toString(),
      text: response.payload,
    })
    expect(headerBytes(response.raw.res.getHeaders())).toBeLessThanOrEqual(MAX_HEADER_BYTES)
    for (const { name, value, maxAge } of response.cookies) {
      if (maxAge === 0) parts.cookies.delete(name)
      else parts.cookies.set(name, value)
    }
    const isJson = String(response.headers['content-type']).startsWith('application/json')
    return {
      status: response.statusCode,
      body: isJson && response.payload ? response.json() : undefined,
      text: response.payload,
      headers: response.headers,
    }
  }
  const post = (url: string, body: object = {}, headers = {}) => call({ method: 'POST', url, payload: body, headers })
  const newAddress = () => `user-${Math.random().toString(36).slice(2)}@example.com`
  const signIn = async (email: string, password: string) =>
    toSignedIn((await post('/token?grant_type=password', { email, password })).body)
  return {
    app,
    post,
    get: (url: string, headers: Record<string, string> = {}) => call({ method: 'GET', url, headers }),
    put: (url: string, body: object, headers: Record<string, string> = {}) =>
      call({ method: 'PUT', url, payload: body, headers }),
    delete: (url: string, headers: Record<string, string> = {}) => call({ method: 'DELETE', url, headers }),
    submit: (url: string, form: Record<string, string>, headers: Record<string, string> = {}) =>
      call({
        method: 'POST',
        url,
        payload: new URLSearchParams(form).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      }),
    otherBrowser: () => doorOf(app, { ...parts, cookies: new Map() }),
    async signedIn(email = newAddress(), password = 'correct horse') {
      await post('/admin/users', { email, password, email_confirm: true }, admin)
      return signIn(email, password)
    },
    async signedUp(email = newAddress(), password = 'correct horse') {
      await post('/signup', { email, password })
      const mail = await mailbox.waitFor(email)
      await call({ method: 'GET', url: linkPath(mail.text) })
      return signIn(email, password)
    },
  }
}

/** Another process of a service, with its database and clock, whose requests have one second. It delivers nothing. */
export const startImpatient = ({ deps, clock }: TestService, settings: Record<string, string> = {}) =>
  startTestService(
    {
      AUTH_DATABASE_URL: deps.config.database.url,
      AUTH_API_MAX_REQUEST_DURATION: '1',
      AUTH_WORKERS_ENABLED: 'false',
      ...settings,
    },
    clock,
  )

/** Authorization with a token made from the secret, as operators make them. */
export async function bearer(claims: object) {
  const token = await new SignJWT({ ...claims })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(new TextEncoder().encode(SECRET))
  return { authorization: `Bearer ${token}` }
}

export function toSignedIn(body: { access_token: string; refresh_token: string; user: { id: string } }): SignedIn {
  return {
    accessToken: body.access_token,
    refreshToken: body.refresh_token,
    userId: body.user.id,
    auth: { authorization: `Bearer ${body.access_token}` },
  }
}

/** Path and query of the first link in a mail's text. */
export function linkPath(text: string): string {
  const { pathname, search } = new URL(/https?:\/\/\S+\/verify\?\S+/.exec(text)?.[0] as string)
  return pathname + search
}

/** The token of the first link in a mail's text. */
export const tokenIn = (text: string): string =>
  new URLSearchParams(linkPath(text).split('?')[1]).get('token') as string

/** Where an answer sends the browser: by its header, or by a page that goes there. */
export function locationOf({ headers, text }: Answer): string {
  if (headers.location) return String(headers.location)
  const [, href = ''] = /<a href="([^"]*)"/.exec(text) ?? []
  return href.replaceAll('&amp;', '&')
}

/** Parameters in the fragment of a redirect. */
export const fragmentOf = (answer: Answer) => Object.fromEntries(new URLSearchParams(locationOf(answer).split('#')[1]))

/** Parameters in the query of a redirect. */
export const queryOf = (answer: Answer) => Object.fromEntries(new URL(locationOf(answer)).searchParams)

export const codeIn = (text: string): string => /code: (\d+)/.exec(text)?.[1] as string

/** `service`: one per file, with default settings. Tests that need others start their own. */
export const test = base.extend<object & { service: TestService }>({
  service: perFile(() => startTestService()),
})
