// `pnpm bench`: each figure of design.md section 8 that applies, both sides measured in one run on one machine, and the
// ratio. The service runs as a process of its own on an embedded PostgreSQL; the load comes from this process.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { hash } from 'argon2'
import pg from 'pg'
import { bareArgon2, bareRotations, bareSelects, SERVICE_HASHING } from './bare.ts'
import { createUsers, refreshes, runFor, signIns, startService, userReads } from './load.ts'
import { medianAnswers } from './parity.ts'
import { loadUsers, refreshP99 } from './scale.ts'

const SECONDS = Number(process.env.BENCH_SECONDS || 6)
/** Before each rate: a service runs for days, and its first seconds are spent on compiling. */
const WARM_UP_SECONDS = 5
const CONCURRENCY = 16
/** Loaded before the rates are measured, so that they hold at size; a smaller number makes a quicker run. */
const USERS = Number(process.env.BENCH_USERS || 1_000_000)
const SMALL = 1_000

interface Row {
  what: string
  ours: string
  against: string
  ratio: number
  goal: string
}

const rows: Row[] = []
const dataDir = await mkdtemp(join(tmpdir(), 'bench-postgres-'))
const postgres = await startEmbeddedPostgres({ dataDir, database: 'bench' })
try {
  // Once before, as on any machine that has run it: the first start compiles and migrates.
  await (await startService(postgres.url)).stop()
  const service = await startService(postgres.url)
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  const idleMib = Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${service.pid}/status`, 'utf8'))?.[1]) / 1024
  row('idle memory, MiB', idleMib, 120, idleMib / 120, '≤ 1')
  row('start to ready, ms', service.readyMs, 1500, service.readyMs / 1500, '≤ 1')

  await loadUsers(postgres.url, 0, SMALL)
  await refreshP99(service.base, 0, SMALL)
  const small = await refreshP99(service.base, 0, SMALL, 1)
  await loadUsers(postgres.url, SMALL, USERS)
  const large = await refreshP99(service.base, SMALL, USERS)
  row(`refresh p99, ms, at ${USERS} users`, large, small, large / small, '≤ 1.2')

  const users = await createUsers(service.base, CONCURRENCY)
  const compare = async (what: string, goal: string, ours: () => Promise<void>, bare: () => Promise<void>) => {
    await runFor(WARM_UP_SECONDS, CONCURRENCY, ours)
    await runFor(1, CONCURRENCY, bare)
    const [us, them] = [await runFor(SECONDS, CONCURRENCY, ours), await runFor(SECONDS, CONCURRENCY, bare)]
    row(what, us, them, us / them, goal)
  }
  const rotations = await bareRotations(postgres.url, users)
  await compare('refreshes/s | same SQL through pg', '≥ 0.50', refreshes(service.base, users), rotations.run)
  await rotations.close()
  const selects = await bareSelects(postgres.url, users)
  await compare('GET /user/s | same SELECT through pg', '≥ 0.50', userReads(service.base, users), selects.run)
  await selects.close()
  // Last, because 70 a second would not warm up in any reasonable time what these share with the others.
  await compare(
    'password sign-ins/s | argon2 verifications/s',
    '≥ 0.90',
    signIns(service.base, users),
    await bareArgon2(),
  )
  await service.stop()

  const pool = new pg.Pool({ connectionString: postgres.url })
  await pool.query("update users set password_hash = $1 where email like 'user-__@%' or email like 'user-___@%'", [
    await hash('the password', SERVICE_HASHING),
  ])
  await pool.end()
  // Without its worker: what it does after the answers would only disturb the clock.
  const strict = await startService(postgres.url, {
    AUTH_MAILER_AUTOCONFIRM: 'false',
    AUTH_RATE_LIMIT_EMAIL_SENT: '1000000',
    AUTH_WORKERS_ENABLED: 'false',
  })
  for (const { path, known, unknown } of await medianAnswers(
    strict.base,
    (index) => `user-${index + 10}@example.com`,
  )) {
    row(`POST ${path}, ms: known | unknown address`, known, unknown, known / unknown, '0.95 to 1.05')
  }
  await strict.stop()
} finally {
  await postgres.stop()
  await rm(dataDir, { recursive: true, force: true })
}

console.table(Object.fromEntries(rows.map(({ what, ...figures }) => [what, figures])))

function row(what: string, ours: number, against: number, ratio: number, goal: string) {
  rows.push({ what, ours: figure(ours), against: figure(against), ratio: Number(ratio.toFixed(2)), goal })
}

function figure(value: number): string {
  return value.toFixed(value < 20 ? 2 : 0)
}
