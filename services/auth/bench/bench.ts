// `pnpm bench`: measures each applicable figure of design.md section 8 for both sides, in one run on one machine, with
// the ratio. Also measures how the cost grows with users and processes (growth.ts). The service runs as a separate
// process on an embedded PostgreSQL; this process generates the load. The results are written to results/.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { figureText } from '@services/common/bench/figure-text'
import { median } from '@services/common/bench/median'
import { lookInto } from '@services/common/bench/postgres'
import { startReport } from '@services/common/bench/report'
import { startTimes } from '@services/common/bench/start-times'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { hash } from 'argon2'
import { measureApplications } from './applications.ts'
import { bareArgon2, bareRotations, bareSelects, SERVICE_HASHING } from './bare.ts'
import { measureEvents } from './events.ts'
import { costs, growProcesses, growUsers, refreshP99BySize } from './growth.ts'
import { measureHooks } from './hooks.ts'
import { measureImage } from './image.ts'
import { createUsers, PASSWORD, refreshes, runFor, signIns, startService, userReads } from './load.ts'
import { medianAnswers } from './parity.ts'
import { measurePasskeys } from './passkeys.ts'
import { measureTelling, USERS_TO_TELL } from './telling.ts'

const SECONDS = Number(process.env.BENCH_SECONDS || 6)
/** Warm-up before each rate: a service runs for days, and its first seconds are spent on compiling. */
const WARM_UP_SECONDS = Math.min(5, SECONDS)
const CONCURRENCY = 16
const ROUNDS = 5
/** Users loaded before the rates are measured, so that the rates hold at size; fewer make a quicker run. */
const USERS = Number(process.env.BENCH_USERS || 1_000_000)
const SIZES = [...[1_000, 10_000, 100_000].filter((size) => size < USERS), USERS]

const report = startReport('auth', ['BENCH_SECONDS', 'BENCH_USERS', 'BENCH_NODE_FLAGS', 'BENCH_PROBES'])
const dataDir = await mkdtemp(join(tmpdir(), 'bench-postgres-'))
const postgres = await startEmbeddedPostgres({ dataDir, database: 'bench' })
const database = lookInto(postgres.url)
try {
  const postgresVersion = await database.version()
  // The first start compiles and migrates; later ones on the same machine do not.
  const [, ...starts] = await startTimes(4, () => startService(postgres.url))
  await measureImage(report, postgres.url)
  const service = await startService(postgres.url)
  row('start', 'start to ready', 'the bound', 'ms', [median(starts), 1500], { atMost: 1 })

  const users = await createUsers(service.base, CONCURRENCY)
  // Without a warm-up the first size would be measured while the service still compiles, and the last would look good.
  for (const warmUp of [refreshes, userReads, signIns]) {
    await runFor(WARM_UP_SECONDS, CONCURRENCY, warmUp(service.base, users))
  }
  const measured = { report, database, postgres, seconds: SECONDS / 2, concurrency: CONCURRENCY }
  const passwordHash = await hash(PASSWORD, SERVICE_HASHING)
  await growUsers(measured, service, SIZES, passwordHash)
  const loadedLast = { base: service.base, from: SIZES.at(-2) ?? 0, to: USERS }
  const [large, small] = await refreshP99BySize(measured, loadedLast, SIZES[0] ?? 0, passwordHash)
  row(
    'refresh-p99',
    `refresh p99, ${figureText(USERS)} users`,
    `${figureText(SIZES[0] ?? 0)} users`,
    'ms',
    [large, small],
    { atMost: 1.2 },
  )

  const compare = async (
    [id, what, against]: [string, string, string],
    atLeast: number,
    ours: () => Promise<void>,
    bare: () => Promise<void>,
  ) => {
    await runFor(WARM_UP_SECONDS, CONCURRENCY, ours)
    await runFor(1, CONCURRENCY, bare)
    // Alternating, so that other load on the machine affects both.
    const rates: { us: number; them: number }[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const [us, them] = [await runFor(SECONDS / 2, CONCURRENCY, ours), await runFor(SECONDS / 2, CONCURRENCY, bare)]
      rates.push({ us: us.rate, them: them.rate })
    }
    const sides = [median(rates.map(({ us }) => us)), median(rates.map(({ them }) => them))] as const
    row(id, what, against, 'a second', sides, { atLeast })
  }
  const rotations = await bareRotations(postgres.url, users)
  await compare(['refreshes', 'refreshes', 'same SQL through pg'], 0.5, refreshes(service.base, users), rotations.run)
  await rotations.close()
  const selects = await bareSelects(postgres.url, users)
  await compare(['user-reads', 'GET /user', 'same SELECT through pg'], 0.5, userReads(service.base, users), selects.run)
  await selects.close()
  // Last: at 70 a second these would not warm up the shared code in reasonable time.
  const verifications = await bareArgon2()
  await compare(
    ['sign-ins', 'password sign-ins', 'argon2 verifications'],
    0.9,
    signIns(service.base, users),
    verifications,
  )
  await costs(measured, service, SIZES.at(-2) ?? 0, USERS)
  await service.stop()
  await growProcesses(measured)
  const passkeyRate = await measurePasskeys(postgres.url, SECONDS / 2, CONCURRENCY)
  row('passkey-sign-ins', 'passkey sign-ins', 'the bound', 'a second', [passkeyRate, 500], { atLeast: 1 })
  for (const { what, withEvents, without } of await measureEvents(postgres.url, SECONDS / 2, CONCURRENCY)) {
    const id = `events-${what.toLowerCase().replaceAll(/\W+/g, '-')}`
    row(id, `${what}, with a receiver of events`, 'without', 'a second', [withEvents, without], { atLeast: 0.95 })
  }
  for (const { id, what, against, ours, theirs, atLeast } of await measureApplications(
    postgres.url,
    SECONDS / 2,
    CONCURRENCY,
  )) {
    row(id, what, against, 'a second', [ours, theirs], { atLeast })
  }
  await measureHooks(report, postgres.url)

  // Without a worker: its work after the answers would only disturb the timing.
  const strict = await startService(postgres.url, {
    AUTH_MAILER_AUTOCONFIRM: 'false',
    AUTH_RATE_LIMIT_EMAIL_SENT: '1000000',
    AUTH_WORKERS_ENABLED: 'false',
  })
  for (const { path, known, unknown } of await medianAnswers(
    strict.base,
    (index) => `user-${index + 10}@example.com`,
  )) {
    const id = `parity-${path.split('?')[0]?.slice(1)}`
    row(id, `POST ${path}, known address`, 'unknown', 'ms', [known, unknown], { atLeast: 0.95, atMost: 1.05 })
  }
  await strict.stop()

  // A run with fewer users has no user left that the benchmarks above have not used.
  if (USERS >= USERS_TO_TELL) await measureTelling(report, database, postgres.url)
  await report.write(new URL('results/', import.meta.url), { postgres: postgresVersion })
} finally {
  await database.close()
  await postgres.stop()
  await rm(dataDir, { recursive: true, force: true })
  report.print()
}

function row(
  id: string,
  what: string,
  against: string,
  unit: string,
  [ours, theirs]: readonly [number, number],
  goal: { atLeast?: number; atMost?: number },
) {
  report.row({ id, what, against, unit, ours, theirs, compared: 'ratio', goal })
}
