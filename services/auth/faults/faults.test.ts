// Behavior of auth when a dependency or a client dies, hangs or floods it. Each fault is a row of the table printed at
// the end: requests, answers, and acknowledged work that was lost.
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findFreePort } from '@services/common/dev/dev-ports'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { type Mailbox, startMailbox } from '@services/common/testing/mailbox'
import { openFaultReport } from '@services/common/testing/run/fault-report'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { bearer } from '../test/service.ts'
import { openProcesses } from '../test/service-process.ts'
import { ALLOWED, createPerson, type Load, post, signIn, startLoad } from './load.ts'

const TEST_WITHIN_MS = 180_000
const report = openFaultReport()

let folder: string
let port: number
let postgres: EmbeddedPostgres
let mailbox: Mailbox
let processes: ReturnType<typeof openProcesses>

/** Database on a disk with its log synced: a killed server must recover every confirmed commit. */
const startPostgres = async () => {
  postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), port, database: 'auth' })
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'auth-faults-'))
  ;[port, mailbox] = await Promise.all([findFreePort(), startMailbox()])
  await startPostgres()
  processes = openProcesses({
    AUTH_DATABASE_URL: postgres.url,
    AUTH_SMTP_PORT: String(mailbox.port),
    AUTH_RATE_LIMIT_EMAIL_SENT: '1000000',
    AUTH_PASSWORD_HASH_MEMORY_KIB: '1024',
  })
}, 60_000)
afterEach(async () => {
  await processes.end()
  await mailbox.close()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
})

async function loadOn(...bases: string[]): Promise<Load> {
  const [first = ''] = bases
  const admin = await bearer({ role: 'service_role' })
  const tokens: string[] = []
  for (let number = 0; number < 4; number++) {
    const { body } = await signIn(first, await createPerson(first, admin))
    tokens.push((body as { refresh_token: string }).refresh_token)
  }
  return startLoad(bases, tokens)
}

async function query(text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: postgres.url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** Expects an account and a mail for each acknowledged sign-up, live sessions, and an empty queue. */
async function expectNothingLost(fault: string, load: Load, base: string) {
  expect(load.acknowledged.length).toBeGreaterThan(10)
  expect(Object.keys(load.statuses).filter((status) => !ALLOWED.includes(Number(status)))).toEqual([])
  const accounts = new Set((await query('select email from users')).map(({ email }) => email))
  const withoutAccount = load.acknowledged.filter((email) => !accounts.has(email))
  const mailed = () => new Set(mailbox.messages().flatMap(({ to }) => to))
  const withoutMail = () => load.acknowledged.filter((email) => !mailed().has(email))
  await expect.poll(() => withoutMail().length, { timeout: 90_000, interval: 500 }).toBe(0)
  const stuck = async () =>
    (await query(`select from auth_queue.job where state < 'completed' and name in ('mail', 'message-requests')`))
      .length
  await expect.poll(stuck, { timeout: 60_000, interval: 500 }).toBe(0)
  let signedOut = 0
  for (const refresh_token of load.refreshTokens) {
    const { status } = await post(`${base}/token?grant_type=refresh_token`, { refresh_token })
    if (status !== 200) signedOut++
  }
  report(fault, {
    'answered 200': load.statuses[200] ?? 0,
    '429, 503, 504': (load.statuses[429] ?? 0) + (load.statuses[503] ?? 0) + (load.statuses[504] ?? 0),
    'broken connections': load.statuses[0] ?? 0,
    'longest answer, ms': Math.round(load.longest),
    'sign-ups acknowledged': load.acknowledged.length,
    'accounts lost': withoutAccount.length,
    'mails lost': withoutMail().length,
    'sessions lost': signedOut,
  })
  expect({ withoutAccount, signedOut }).toEqual({ withoutAccount: [], signedOut: 0 })
}

test(
  'PostgreSQL killed and restarted under load fails requests for a moment and loses nothing acknowledged',
  async () => {
    const { base, child } = await processes.serve()
    const load = await loadOn(base)
    await sleep(2_000)
    process.kill(postgres.pid, 'SIGKILL')
    await sleep(2_000)
    await startPostgres()
    const before = load.acknowledged.length
    await expect.poll(() => load.acknowledged.length, { timeout: 30_000 }).toBeGreaterThan(before + 20)
    await load.stop()
    expect(child.exitCode).toBeNull()
    await expectNothingLost('PostgreSQL killed and restarted', load, base)
  },
  TEST_WITHIN_MS,
)

test(
  'a service that starts before its PostgreSQL waits for it',
  async () => {
    await postgres.stop()
    const starting = processes.start(['src/main.ts'])
    await starting.until(/(database not reachable yet)/)
    await startPostgres()
    await starting.until(/listening at (http:[^"]+)"/)
    const base = /listening at (http:[^"]+)"/.exec(starting.output())?.[1] as string
    const load = await loadOn(base)
    await sleep(1_500)
    await load.stop()
    await expectNothingLost('PostgreSQL later than the service', load, base)
  },
  TEST_WITHIN_MS,
)

test(
  'a replica killed under load loses nothing that it had acknowledged',
  async () => {
    const [doomed, staying] = await Promise.all([processes.serve(), processes.serve()])
    const load = await loadOn(doomed.base, staying.base)
    await sleep(2_000)
    doomed.child.kill('SIGKILL')
    await sleep(2_000)
    await load.stop()
    await expectNothingLost('one of two replicas killed', load, staying.base)
  },
  TEST_WITHIN_MS,
)

test.for<[string, (mailbox: Mailbox) => Promise<void>]>([
  ['hangs', (mailbox) => mailbox.hang()],
  ['refuses', (mailbox) => mailbox.refuse()],
  ['says try later', (mailbox) => mailbox.answer(421)],
  ['drops the connection over a mail', (mailbox) => mailbox.drop()],
])('a mail server that %s delays mails and loses none', { timeout: TEST_WITHIN_MS }, async ([what, fail]) => {
  const { base } = await processes.serve()
  await fail(mailbox)
  const load = await loadOn(base)
  await sleep(1_500)
  await load.stop()
  expect(load.longest).toBeLessThan(5_000)
  await mailbox.accept()
  await expectNothingLost(`mail server ${what}`, load, base)
})

test(
  '500 connections of a slow client block no other request, and are closed',
  async () => {
    const { base, child } = await processes.serve()
    const slow = await Promise.all(Array.from({ length: 500 }, () => openSlowConnection(base)))
    const load = await loadOn(base)
    await sleep(2_000)
    await load.stop()
    expect(load.longest).toBeLessThan(5_000)
    const open = () => slow.filter((socket) => !socket.closed).length
    await expect.poll(open, { timeout: 120_000, interval: 1_000 }).toBe(0)
    expect(child.exitCode).toBeNull()
    await expectNothingLost('500 slow connections', load, base)
  },
  TEST_WITHIN_MS,
)

/** Sends a header line every two seconds, and never the last one. */
async function openSlowConnection(base: string): Promise<Socket> {
  const socket = connect(Number(new URL(base).port), '127.0.0.1')
  await once(socket, 'connect')
  socket.write('POST /signup HTTP/1.1\r\nhost: slow\r\n')
  const more = setInterval(() => socket.write('x-more: 1\r\n'), 2_000)
  socket.on('error', () => {}).on('close', () => clearInterval(more))
  socket.resume()
  return socket
}

test(
  'sign-ins far above capacity are answered correctly or refused with Retry-After, within bounded memory, and the service recovers',
  async () => {
    const { base, child } = await processes.serve({ AUTH_PASSWORD_HASH_MEMORY_KIB: '19456' })
    const email = await createPerson(base, await bearer({ role: 'service_role' }))
    const timed = async () => {
      const startedAt = performance.now()
      expect((await signIn(base, email)).status).toBe(200)
      return performance.now() - startedAt
    }
    await timed()
    const calm = await timed()
    const memory = async () =>
      Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024
    const before = await memory()
    let peak = before
    const watch = setInterval(async () => {
      peak = Math.max(peak, await memory().catch(() => 0))
    }, 100)
    const burst = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) =>
        post(`${base}/token?grant_type=password`, { email, password: index % 2 ? 'correct horse' : 'wrong' }, 60_000),
      ),
    )
    clearInterval(watch)
    const count = (status: number) => burst.filter((answer) => answer.status === status).length
    const wrongly = burst.filter(({ status }, index) => status === 200 && index % 2 === 0).length
    await sleep(1_000)
    // Wrong passwords delay this account; another one shows the state of the service.
    const other = await createPerson(base, await bearer({ role: 'service_role' }))
    const startedAt = performance.now()
    expect((await signIn(base, other)).status).toBe(200)
    const after = performance.now() - startedAt
    report('1,000 sign-ins at once', {
      'answered 200': count(200),
      '400': count(400),
      '429, 503, 504': count(429) + count(503) + count(504),
      'broken connections': count(0),
      'memory, MiB more': Math.round(peak - before),
      'one alone before, ms': Math.round(calm),
      'one alone after, ms': Math.round(after),
    })
    expect(burst.filter(({ status }) => ![0, 200, 400, 429, 503, 504].includes(status))).toEqual([])
    expect(wrongly).toBe(0)
    expect(count(429) + count(503)).toBeGreaterThan(0)
    expect(peak - before).toBeLessThan(256)
    expect(after).toBeLessThan(Math.max(10 * calm, 2_000))
  },
  TEST_WITHIN_MS,
)
