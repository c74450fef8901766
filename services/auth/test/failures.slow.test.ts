import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { createTestClock } from '@services/common/testing/clock'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { fillHashQueue } from './full-hash-queue.ts'
import {
  type Answer,
  createDatabase,
  fragmentOf,
  linkPath,
  locationOf,
  queryOf,
  type SignedIn,
  startImpatient,
  startTestService,
  type TestService,
  test,
  toSignedIn,
} from './service.ts'

const password = 'correct horse'

describe('a mail server that is down', () => {
  test('delays the mail, never the sign-up', async ({ service }) => {
    await service.mailbox.refuse()
    const { status } = await service.post('/signup', { email: 'delayed@example.com', password })
    expect(status).toBe(200)
    await service.mailbox.accept()
    const mail = await service.mailbox.waitFor('delayed@example.com')
    expect((await service.get(linkPath(mail.text))).headers.location).toContain('#access_token=')
  })

  test('for longer than a link lives delays the mail all the same; its link counts from when it left', async () => {
    const database = await createDatabase()
    const settings = { AUTH_DATABASE_URL: database.url }
    const clock = createTestClock()
    const before = await startTestService(settings, clock)
    await before.mailbox.refuse()
    const { body } = await before.post('/signup', { email: 'weekend@example.com', password })
    const tries = async () =>
      (await before.get(`/admin/messages?user_id=${body.id}`, before.admin)).body.messages[0].attempts
    await expect.poll(tries).toBeGreaterThan(0)
    // Ended, so that no attempt is on its way, which would count from before.
    await before.close()
    clock.advance({ seconds: 20 * 3600 })
    const service = await startTestService(settings, clock)
    const mail = await service.mailbox.waitFor('weekend@example.com')
    clock.advance({ seconds: 3500 })
    expect((await service.get(linkPath(mail.text))).headers.location).toContain('#access_token=')
    await service.close()
    await database.drop()
  })

  test('that answers "try later" is tried again', async ({ service }) => {
    await service.mailbox.answer(451)
    await service.post('/signup', { email: 'later@example.com', password })
    await service.mailbox.accept()
    await service.mailbox.waitFor('later@example.com')
  })

  test('that refuses the recipient for good ends in the dead-letter queue at once', async ({ service }) => {
    await service.mailbox.answer(550)
    await service.post('/signup', { email: 'nobody@example.com', password })
    await expect.poll(() => service.deps.queue.depth('mail.dead')).toBeGreaterThan(0)
    await service.mailbox.accept()
  })
})

// The queue holds 80 for each core. Strangers queue too: section 18's list has sign-ins of unknown users that are
// faster, for lack of a hash.
test('sign-ins beyond the capacity of the queue get Retry-After; the rest get correct answers', async () => {
  const service = await startTestService()
  await service.signedIn('burst@example.com')
  const signIn = (email: string) => service.post('/token?grant_type=password', { email, password })
  const all = () => Promise.all(['burst', 'stranger-1', 'stranger-2'].map((name) => signIn(`${name}@example.com`)))
  const empty = await fillHashQueue(service)
  const refused = await all()
  await empty()
  for (const { status, body, headers } of refused) {
    expect([status, body.error_code]).toEqual([503, 'over_capacity'])
    expect(Number(headers['retry-after'])).toBeGreaterThan(0)
  }
  expect((await all()).map(({ status, body }) => body.error_code ?? status)).toEqual([
    200,
    'invalid_credentials',
    'invalid_credentials',
  ])
  await service.close()
})

describe('a database that hangs', () => {
  /** A service whose requests may take a second, and one beside it whose requests may take their time. */
  let service: TestService
  let patient: TestService
  let me: SignedIn
  let folder: string
  let logFile: string
  const email = 'hangs@example.com'

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'hangs-'))
    logFile = join(folder, 'log')
    patient = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
    service = await startImpatient(patient, { AUTH_LOG_LEVEL: 'warn', AUTH_LOG_FILE: logFile })
    const made = { email, password, email_confirm: true }
    expect((await patient.post('/admin/users', made, patient.admin)).status).toBe(200)
    me = toSignedIn((await patient.post('/token?grant_type=password', { email, password })).body)
  })
  afterAll(async () => {
    await service.close()
    await patient.close()
    await rm(folder, { recursive: true })
  })

  const refresh = (on: TestService) => on.post('/token?grant_type=refresh_token', { refresh_token: me.refreshToken })
  let names = 0
  const newForm = { 'x-supabase-api-version': '2024-01-01' }

  /** Runs `work` while another connection holds the tables, and then waits until nothing runs any more. */
  async function whileLocked<Result>(lock: string, work: () => Promise<Result>): Promise<Result> {
    const holder = await service.deps.pool.connect()
    try {
      await holder.query(`begin; lock table ${lock}`)
      return await work()
    } finally {
      const others = `select query from pg_stat_activity where datname = current_database() and state = 'active'
        and application_name = 'auth' and pid <> pg_backend_pid()`
      // Runs on `holder` while it holds the lock: its waiters may take all other connections. A transaction would keep
      // seeing its first snapshot.
      const none = (by: { query: (text: string) => Promise<{ rows: unknown[] }> }, which = '') => {
        const left = async () => {
          // A transaction would go on seeing what it saw first.
          await by.query('select pg_stat_clear_snapshot()')
          return (await by.query(others + which)).rows
        }
        return expect.poll(left).toEqual([])
      }
      try {
        // Answered requests have finished by then; only counters wait for their table, and gaps to be given back.
        await none(holder, ` and query not like 'delete from "send_gaps"%' and query not like '%rate_limits%'`)
      } finally {
        await holder.query('rollback')
        holder.release()
      }
      await none(service.deps.pool)
    }
  }

  /** Requests by the table whose lock they wait for. */
  const REQUESTS: Record<string, Record<string, (headers?: Record<string, string>) => Promise<Answer>>> = {
    users: {
      'GET /user': (headers) => service.get('/user', { ...headers, ...me.auth }),
      'PUT /user': (headers) => service.put('/user', { data: { late: true } }, { ...headers, ...me.auth }),
      'signing in': (headers) => service.post('/token?grant_type=password', { email, password }, headers),
      'GET /admin/users': (headers) => service.get('/admin/users', { ...headers, ...service.admin }),
    },
    send_gaps: {
      'a change of address': (headers) =>
        service.put('/user', { email: 'late@example.com' }, { ...headers, ...me.auth }),
      'POST /otp': (headers) => service.post('/otp', { email }, headers),
    },
    identities: {
      'POST /signup': (headers) => service.post('/signup', { email: 'new@example.com', password }, headers),
    },
    rate_limits: {
      'POST /recover behind the limits': (headers) =>
        service.post('/recover', { email: `${names++}@example.com` }, headers),
    },
  }

  /** Log lines of these requests; lines are written together, a tenth of a second late. */
  async function logOf(answers: Answer[]) {
    const ids = answers.map(({ headers }) => String(headers['x-request-id']))
    const lines = (await readFile(logFile, 'utf8')).split('\n').filter((line) => ids.some((id) => line.includes(id)))
    return lines.map((line) => JSON.parse(line)).map(({ level, msg }) => `${level}: ${msg}`)
  }
  const TOOK_TOO_LONG = 'warn: request took too long'

  test.for(Object.entries(REQUESTS))(
    'is answered 504 in time and told once, as a warning: whoever waits for %s',
    async ([table, requests]) => {
      const asked = await whileLocked(`${table} in access exclusive mode`, () =>
        Promise.all(
          Object.entries(requests).map(async ([name, ask]) => ({
            name,
            answers: await Promise.all([ask(), ask(newForm)]),
          })),
        ),
      )
      for (const { name, answers } of asked) {
        expect({ name, answers }).toMatchObject({
          name,
          answers: [
            { status: 504, body: { code: 504, error_code: 'request_timeout' } },
            { status: 504, body: { code: 'request_timeout' } },
          ],
        })
        await expect.poll(() => logOf(answers), { message: name }).toEqual([TOOK_TOO_LONG, TOOK_TOO_LONG])
      }
    },
  )

  test.for(['', 'pkce_'])('sends the browser on with an error when a link %s… is followed, once', async (prefix) => {
    const { body } = await patient.post('/admin/generate_link', { type: 'magiclink', email }, patient.admin)
    const ways = [
      (path: string) => service.get(path),
      (path: string) => service.post(path, undefined, { 'content-type': 'application/x-www-form-urlencoded' }),
    ]
    const token = prefix ? `${prefix}unknown` : body.hashed_token
    const path = `/verify?type=magiclink&token=${token}&redirect_to=https://site.example/app`
    const answers = await whileLocked('one_time_tokens in access exclusive mode', () =>
      Promise.all(ways.map((follow) => follow(path))),
    )
    // After a form the browser is sent on by a page.
    expect(answers.map(({ status }) => status)).toEqual([303, 200])
    for (const answer of answers) {
      expect(answer.headers['referrer-policy']).toBe('no-referrer')
      expect(locationOf(answer)).toMatch(/^https:\/\/site\.example\/app/)
      expect(fragmentOf(answer)).toEqual({
        error_code: 'request_timeout',
        error_description: 'The request took too long',
        sb: '',
      })
      if (prefix) expect(queryOf(answer)).toMatchObject({ error_code: 'request_timeout' })
    }
    expect((await patient.get('/verify?type=magiclink')).status).toBe(400)
    if (!prefix) {
      const again = await patient.get(`/verify?type=magiclink&token=${body.hashed_token}`)
      expect(again.headers.location).toContain('#access_token=')
    }
    await expect.poll(() => logOf(answers)).toEqual([TOOK_TOO_LONG, TOOK_TOO_LONG])
  })

  test('does nothing after it answered', async () => {
    const count = async (table: string) => (await service.deps.pool.query(`select from ${table}`)).rowCount
    const tables = ['users', 'identities', 'one_time_tokens', 'messages', 'auth_queue.job', 'audit_log_entries']
    const counts = () => Promise.all(tables.map(count))
    const before = await counts()
    const signUp = (on: TestService) => on.post('/signup', { email: 'undone@example.com', password })
    // Halfway through its transaction, at the last statements of it, and at a single statement of its own.
    const answers = [
      await whileLocked('messages in exclusive mode', () => signUp(service)),
      await whileLocked('auth_queue.job in exclusive mode', () =>
        service.post('/otp', { email: 'undone-2@example.com' }),
      ),
      await whileLocked('audit_log_entries in exclusive mode', () =>
        service.put('/user', { data: { undone: true } }, me.auth),
      ),
      await whileLocked('sessions in exclusive mode', () => refresh(service)),
    ]
    expect(answers.map(({ status }) => status)).toEqual([504, 504, 504, 504])
    expect(await counts()).toEqual(before)
    expect((await patient.get('/user', me.auth)).body.user_metadata).not.toHaveProperty('undone')
    expect((await refresh(patient)).status).toBe(200)
    // Nothing that was not sent keeps the next request waiting.
    expect((await signUp(patient)).status).toBe(200)
  })
})

test('a restarted PostgreSQL costs 503 for the moment and no restart of the service', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'restarted-postgres-'))
  const first = await startEmbeddedPostgres({ dataDir, durable: false })
  const service = await startTestService({
    AUTH_DATABASE_URL: first.url,
    AUTH_MIGRATE_ON_START: 'true',
    AUTH_MAILER_AUTOCONFIRM: 'true',
  })
  const { body } = await service.post('/signup', { email: 'restart@example.com', password })
  const auth = { authorization: `Bearer ${body.access_token}` }
  const seen = new Set<number>()
  let isRunning = true
  const load = (async () => {
    while (isRunning) {
      const [user, signIn] = await Promise.all([
        service.get('/user', auth),
        service.post('/token?grant_type=password', { email: 'restart@example.com', password }),
      ])
      for (const { status, headers, body: answer } of [user, signIn]) {
        seen.add(status)
        if (status !== 200)
          expect([status, answer.error_code, headers['retry-after']]).toEqual([503, 'service_unavailable', '1'])
      }
    }
  })()
  await expect.poll(() => seen.has(200)).toBe(true)
  await first.stop()
  expect((await service.get('/health/ready')).status).toBe(503)
  expect((await service.get('/health/live')).status).toBe(200)
  const second = await startEmbeddedPostgres({ dataDir, durable: false, port: first.port })
  await expect.poll(async () => (await service.get('/user', auth)).status).toBe(200)
  isRunning = false
  await load
  expect(seen).toEqual(new Set([200, 503]))
  await service.close()
  await second.stop()
  await rm(dataDir, { recursive: true, force: true })
})
