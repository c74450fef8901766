// Measures whether the time after an answer distinguishes a known address from an unknown one: a worker makes and sends
// messages then. Part of `pnpm bench`; alone: `node bench/telling.ts [DOOR...]`, where a door is a name in DOORS.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BenchDatabase, lookInto } from '@services/common/bench/postgres'
import { startReport } from '@services/common/bench/report'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { hash } from 'argon2'
import { SERVICE_HASHING } from './bare.ts'
import { openConnection } from './http-client.ts'
import { PASSWORD, startService } from './load.ts'
import { startMessageSinks } from './message-sinks.ts'
import { timeOf } from './parity.ts'
import { loadUsers } from './scale.ts'

/**
 * Time after an answer in which requests follow each other; how many are answered would reveal what the service is
 * still doing. Two jobs do it, and each begins within half a second (core/outbox/job-delay.ts).
 */
const WATCHED_MS = 1_200
/** Probes of each kind; with 90, chance alone stays within 0.08 of 0.5 in 94 of 100 runs. */
const PROBES = Number(process.env.BENCH_PROBES || 90)
const WARM_UPS = 5
const EACH = PROBES + WARM_UPS
/** First user for these probes; other benchmarks use those before. */
const FIRST_USER = 2_000

/** All requests whose message is made or sent after the answer, each with a body for an address or a number. */
const DOORS: Record<string, { path: string; channel: 'email' | 'phone'; body: object }> = {
  otp: { path: '/otp', channel: 'email', body: { create_user: false } },
  recover: { path: '/recover', channel: 'email', body: {} },
  magiclink: { path: '/magiclink', channel: 'email', body: {} },
  resend: { path: '/resend', channel: 'email', body: { type: 'signup' } },
  signup: { path: '/signup', channel: 'email', body: { password: 'a new password' } },
  'otp-sms': { path: '/otp', channel: 'phone', body: { create_user: false } },
  'signup-sms': { path: '/signup', channel: 'phone', body: { password: 'a new password' } },
  'resend-sms': { path: '/resend', channel: 'phone', body: { type: 'sms' } },
}

/** Users that the database needs for this measurement. */
export const USERS_TO_TELL = FIRST_USER + Object.keys(DOORS).length * EACH

/**
 * Reports how well the time of requests after an answer distinguishes a confirmed account from an unknown
 * address (0.5: not at all, 1: always). Reports the same measure between two kinds of unknown addresses. Probes come in
 * random order, each address once per request.
 */
export async function measureTelling(
  report: ReturnType<typeof startReport>,
  database: BenchDatabase,
  postgresUrl: string,
  doors: readonly string[] = Object.keys(DOORS),
): Promise<void> {
  await database.pool.query(
    `update users set phone = '49151' || lpad(substring(email from 'user-([0-9]+)@'), 8, '0'), phone_confirmed_at = now()
       where email = any ($1)`,
    [Array.from({ length: USERS_TO_TELL }, (_, index) => `user-${index}@example.com`)],
  )
  const sinks = await startMessageSinks()
  const service = await startService(postgresUrl, {
    ...sinks.settings,
    AUTH_MAILER_AUTOCONFIRM: 'false',
    AUTH_EXTERNAL_PHONE_ENABLED: 'true',
    AUTH_RATE_LIMIT_EMAIL_SENT: '1000000',
    AUTH_RATE_LIMIT_SMS_SENT: '1000000',
    AUTH_SMS_MAX_PER_PREFIX: '1000000',
  })
  const send = openConnection(service.base)
  for (const [index, name] of doors.entries()) {
    const door = DOORS[name]
    if (!door) throw new Error(`${name} is no door; there are ${Object.keys(DOORS).join(', ')}`)
    const times = { known: [] as number[], unknown: [] as number[], control: [] as number[] }
    for (const { kind, number, isWarmUp } of inRandomOrder()) {
      await workerIsDone(database)
      await timeOf(send, door.path, {
        ...door.body,
        [door.channel]: addressOf(door.channel, kind, index * EACH + number),
      })
      const startedAt = performance.now()
      let looks = 0
      for (; performance.now() < startedAt + WATCHED_MS; looks++) await send({ method: 'GET', path: '/health/ready' })
      if (!isWarmUp) times[kind].push(WATCHED_MS / looks)
    }
    const against = { against: 'chance', unit: 'AUC', theirs: 0.5, compared: 'difference' } as const
    const id = `telling-${name}`
    report.row({
      ...{ id, what: `after ${name}, known or unknown`, ours: chanceOfLonger(times.known, times.unknown) },
      ...{ ...against, goal: { atLeast: -0.08, atMost: 0.08 } },
    })
    report.row({
      ...{ id: `${id}-control`, what: `after ${name}, unknown or unknown` },
      ...{ ours: chanceOfLonger(times.control, times.unknown), ...against, goal: {} },
    })
  }
  await service.stop()
  await sinks.stop()
}

type Kind = 'known' | 'unknown' | 'control'

function inRandomOrder() {
  const kinds: Kind[] = ['known', 'unknown', 'control']
  const all = Array.from({ length: EACH }, (_, number) =>
    kinds.map((kind) => ({ kind, number, isWarmUp: number < WARM_UPS, at: Math.random() })),
  ).flat()
  return all.toSorted((a, b) => Number(b.isWarmUp) - Number(a.isWarmUp) || a.at - b.at)
}

function addressOf(channel: 'email' | 'phone', kind: Kind, number: number): string {
  const own = FIRST_USER + number
  if (channel === 'email') return kind === 'known' ? `user-${own}@example.com` : `${kind}-${number}@example.com`
  const block = { known: '49151', unknown: '49152', control: '49153' }[kind]
  return `${block}${String(own).padStart(8, '0')}`
}

/** Waits until the worker has finished the previous probe, including its delayed jobs. */
async function workerIsDone({ pool }: BenchDatabase): Promise<void> {
  const left = `select from auth_queue.job where name in ('message-requests', 'mail', 'sms') and state < 'completed' limit 1`
  do await sleep(100)
  while ((await pool.query(left)).rowCount)
  await sleep(100)
}

/** Probability that one of the first took longer than one of the second (AUC). */
const chanceOfLonger = (first: number[], second: number[]) =>
  first.reduce((sum, a) => sum + second.filter((b) => a > b).length + second.filter((b) => a === b).length / 2, 0) /
  (first.length * second.length)

if (import.meta.main) {
  const dataDir = await mkdtemp(join(tmpdir(), 'bench-postgres-'))
  const postgres = await startEmbeddedPostgres({ dataDir, database: 'bench' })
  const database = lookInto(postgres.url)
  try {
    const migrating = await startService(postgres.url)
    await migrating.stop()
    await loadUsers(postgres.url, 0, USERS_TO_TELL, await hash(PASSWORD, SERVICE_HASHING))
    const doors = process.argv.slice(2)
    await measureTelling(startReport('auth', []), database, postgres.url, doors.length > 0 ? doors : undefined)
  } finally {
    await database.close()
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}
