// `pnpm bench`: each figure of design.md section 8 that applies, both sides measured in one run on one machine, and the
// ratio. The service runs as a process of its own on an embedded PostgreSQL; the load comes from this process.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { bareArgon2, bareRotations, bareSelects } from './bare.ts'
import { createUsers, refreshes, runFor, signIns, startService, userReads } from './load.ts'

const SECONDS = Number(process.env.BENCH_SECONDS || 6)
const CONCURRENCY = 16

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

  const users = await createUsers(service.base, CONCURRENCY)
  const compare = async (what: string, goal: string, ours: () => Promise<void>, bare: () => Promise<void>) => {
    await runFor(1, CONCURRENCY, ours)
    await runFor(1, CONCURRENCY, bare)
    const [us, them] = [await runFor(SECONDS, CONCURRENCY, ours), await runFor(SECONDS, CONCURRENCY, bare)]
    row(what, us, them, us / them, goal)
  }
  await compare(
    'password sign-ins/s | argon2 verifications/s',
    '≥ 0.90',
    signIns(service.base, users),
    await bareArgon2(),
  )
  const rotations = await bareRotations(postgres.url, users)
  await compare('refreshes/s | same SQL through pg', '≥ 0.50', refreshes(service.base, users), rotations.run)
  await rotations.close()
  const selects = await bareSelects(postgres.url, users)
  await compare('GET /user/s | same SELECT through pg', '≥ 0.50', userReads(service.base, users), selects.run)
  await selects.close()
  await service.stop()
} finally {
  await postgres.stop()
  await rm(dataDir, { recursive: true, force: true })
}

console.table(Object.fromEntries(rows.map(({ what, ...figures }) => [what, figures])))

function row(what: string, ours: number, against: number, ratio: number, goal: string) {
  rows.push({ what, ours: ours.toFixed(0), against: against.toFixed(0), ratio: Number(ratio.toFixed(2)), goal })
}
