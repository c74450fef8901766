import { availableParallelism } from 'node:os'
import { cpuSecondsOfAll, residentBytesOfAll } from '@services/common/bench/cpu'
import { figureText } from '@services/common/bench/figure-text'
import { median } from '@services/common/bench/median'
import type { BenchDatabase } from '@services/common/bench/postgres'
import type { startReport } from '@services/common/bench/report'
import { type BenchUser, createUsers, refreshes, runFor, signIns, startService, userReads } from './load.ts'
import { drawUsers, loadUsers, SESSIONS_EACH } from './scale.ts'

type Report = ReturnType<typeof startReport>

export interface Measured {
  report: Report
  database: BenchDatabase
  /** Size of the database server. */
  postgres: { url: string; pid: number }
  seconds: number
  concurrency: number
}

const MILLION = 1e6

/** Users and sessions requested at each size, in turn: more than fit on one page, fewer than fill a cache. */
const DRAWN = 3_000
/** Concurrent requests; few enough to leave spare capacity, because latency is measured and not throughput. */
const IN_PEACE = 4

export const TABLES = ['users', 'identities', 'sessions', 'audit_log_entries'] as const

/**
 * Loads up to `sizes` one after the other and measures at each. Nine of ten requests concern the users loaded last,
 * which are the same work at every size.
 */
export async function growUsers(
  { report, database, postgres, seconds, concurrency }: Measured,
  service: { base: string },
  sizes: number[],
  passwordHash: string,
): Promise<void> {
  const asked = report.growth('users', {
    title: `From ${figureText(sizes[0] ?? 0)} to ${figureText(sizes.at(-1) ?? 0)} users, ${SESSIONS_EACH} sessions each`,
    axis: 'users',
    lines: {
      refreshP50: 'refresh p50, ms',
      refreshP99: 'refresh p99, ms',
      refreshes: 'refreshes/s',
      userReads: 'GET /user/s',
      signIns: 'sign-ins/s',
      signInP99: `sign-in p99 of ${concurrency} at once, ms`,
    },
  })
  const stored = report.growth('size', {
    title: 'What they take in the database',
    axis: 'users',
    lines: { database: 'database, MB', perUser: 'bytes per user', perSession: 'bytes per session' },
  })
  let from = 0
  for (const to of sizes) {
    await loadUsers(postgres.url, from, to, passwordHash)
    const [users, identities, sessions] = await Promise.all(
      ['users', 'identities', 'sessions'].map((table) => database.tableBytes(table)),
    )
    stored(to, {
      database: (await database.databaseBytes()) / MILLION,
      perUser: ((users?.all ?? 0) + (identities?.all ?? 0)) / to,
      perSession: (sessions?.all ?? 0) / (to * SESSIONS_EACH),
    })
    const drawn = drawUsers(DRAWN, from, to)
    const once = await refreshOnce(service.base, drawn)
    // Without other load, and on sessions that were read once: the first read measures the disk.
    const inPeace = await runFor(seconds, IN_PEACE, refreshes(service.base, drawn, IN_PEACE))
    const busy = await runFor(seconds, concurrency, refreshes(service.base, drawn, concurrency))
    const reads = await runFor(seconds, concurrency, userReads(service.base, drawn, concurrency))
    const signedIn = await runFor(seconds, concurrency, signIns(service.base, drawn, concurrency))
    asked(to, {
      refreshP50: inPeace.p50,
      refreshP99: inPeace.p99,
      refreshes: busy.rate,
      userReads: reads.rate,
      signIns: signedIn.rate,
      signInP99: signedIn.p99,
    })
    console.log(`  the first refresh of each: ${once.toFixed(0)} a second`)
    from = to
  }
}

const ROUNDS = 7

/**
 * Measures the p99 of a refresh, in milliseconds, at the loaded size and at a small one with its own database and
 * process. Both are measured in turn, so that other load on the machine affects both; returns the medians.
 */
export async function refreshP99BySize(
  { database, postgres, seconds }: Measured,
  large: { base: string; from: number; to: number },
  smallSize: number,
  passwordHash: string,
): Promise<[large: number, small: number]> {
  await database.pool.query('create database small')
  const url = new URL(postgres.url)
  url.pathname = '/small'
  const small = await startService(url.href)
  await loadUsers(url.href, 0, smallSize, passwordHash)
  const sides = [
    { base: large.base, drawn: drawUsers(smallSize, large.from, large.to, 2) },
    { base: small.base, drawn: drawUsers(smallSize, 0, smallSize, 2) },
  ]
  const asked: { ask: (index: number) => Promise<void>; p99: number[] }[] = []
  for (const { base, drawn } of sides) {
    await refreshOnce(base, drawn)
    const ask = refreshes(base, drawn, IN_PEACE)
    await runFor(2 * seconds, IN_PEACE, ask)
    asked.push({ ask, p99: [] })
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const { ask, p99 } of asked) p99.push((await runFor(seconds, IN_PEACE, ask)).p99)
  }
  await small.stop()
  const [ofLarge, ofSmall] = asked.map(({ p99 }) => median(p99))
  return [ofLarge as number, ofSmall as number]
}

/** Measures the scarce resources one request costs, for infra/SCALING.md, on the users loaded last. */
export async function costs(
  { report, database, postgres, seconds, concurrency }: Measured,
  service: { base: string; pid: number },
  from: number,
  to: number,
): Promise<void> {
  for (const table of TABLES) {
    const { all, indexes } = await database.tableBytes(table)
    const rows = await database.rowCount(table)
    report.figure(`bytes-${table}`, {
      what: `a row of ${table}, indexes and TOAST included`,
      unit: 'bytes',
      value: all / rows,
    })
    report.figure(`index-bytes-${table}`, { what: `of it indexes`, unit: 'bytes', value: indexes / rows })
  }
  // Users not requested before, so that the first read is a first read.
  const fresh = drawUsers(DRAWN, from, to, 1)
  await database.pool.query('checkpoint')
  const walBefore = await database.walBytes()
  await refreshOnce(service.base, fresh)
  const walAfter = await database.walBytes()
  report.figure('wal-first-refresh', {
    what: 'write-ahead log of a refresh that is the first on its page since a checkpoint',
    unit: 'bytes',
    value: (walAfter - walBefore) / fresh.length,
  })
  const calls = {
    refresh: refreshes(service.base, fresh, concurrency),
    'user-read': userReads(service.base, fresh, concurrency),
    'sign-in': signIns(service.base, fresh, concurrency),
  }
  for (const [name, call] of Object.entries(calls)) {
    await runFor(1, concurrency, call)
    const before = {
      service: cpuSecondsOfAll(service.pid),
      postgres: cpuSecondsOfAll(postgres.pid),
      wal: await database.walBytes(),
    }
    const { calls: count } = await runFor(seconds, concurrency, call)
    const cost = (id: string, what: string, unit: string, value: number) =>
      report.figure(`${id}-${name}`, { what: `${what} of a ${name}`, unit, value: value / count })
    cost('cpu', "the service's CPU", 'ms', (cpuSecondsOfAll(service.pid) - before.service) * 1000)
    cost('postgres-cpu', "PostgreSQL's CPU", 'ms', (cpuSecondsOfAll(postgres.pid) - before.postgres) * 1000)
    cost('wal', 'write-ahead log', 'bytes', (await database.walBytes()) - before.wal)
  }
}

/** Measures 1 process up to one per core; the load and PostgreSQL share the same cores. */
export async function growProcesses({ report, postgres, seconds, concurrency }: Measured): Promise<void> {
  const point = report.growth('processes', {
    title: `From one process to ${availableParallelism()}, on ${availableParallelism()} cores that PostgreSQL and the load share`,
    axis: 'processes',
    lines: {
      refreshes: 'refreshes/s',
      userReads: 'GET /user/s',
      signIns: 'sign-ins/s',
      memory: 'resident in all, MiB',
    },
  })
  for (const processes of upTo(availableParallelism())) {
    const service = await startService(postgres.url, { AUTH_WEB_CONCURRENCY: String(processes) })
    // Several connections for each process: they are assigned round-robin.
    const users = await createUsers(service.base, concurrency, `of-${processes}`)
    const rate = async (call: (loop: number) => Promise<void>, warmUpSeconds: number) => {
      await runFor(warmUpSeconds, concurrency, call)
      return (await runFor(seconds, concurrency, call)).rate
    }
    const rates = {
      refreshes: await rate(refreshes(service.base, users), seconds),
      userReads: await rate(userReads(service.base, users), seconds),
      signIns: await rate(signIns(service.base, users), 1),
    }
    point(processes, { ...rates, memory: residentBytesOfAll(service.pid) / 1024 ** 2 })
    await service.stop()
  }
}

/** Refreshes every session once, a few at a time; returns the rate per second. */
async function refreshOnce(base: string, users: BenchUser[]): Promise<number> {
  const refresh = refreshes(base, users, IN_PEACE)
  const startedAt = performance.now()
  await Promise.all(
    Array.from({ length: IN_PEACE }, async (_, loop) => {
      for (let done = loop; done < users.length; done += IN_PEACE) await refresh(loop)
    }),
  )
  return (users.length / (performance.now() - startedAt)) * 1000
}

/** Powers of two below the number, and the number itself. */
function upTo(count: number): number[] {
  const powers = Array.from({ length: Math.ceil(Math.log2(count)) }, (_, power) => 2 ** power)
  return [...powers, count]
}
