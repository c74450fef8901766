// The service as its image runs it, from its bundle (infra/bundle): CPU of a start, and memory. Memory is read when
// idle, after a busy minute of sign-ups, pages of users and sign-ins, and at its highest. Part of `pnpm bench`; alone:
// `node bench/image.ts`.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { peakBytesOfAll, residentBytesOfAll } from '@services/common/bench/cpu'
import { startReport } from '@services/common/bench/report'
import { startCpu } from '@services/common/bench/start-cpu'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { bundle } from '../../../infra/bundle/bundle.ts'
import { createUsers, type Program, pageReads, runCalls, signIns, startService } from './load.ts'

const CONCURRENCY = 16
const PAGES = 1_500
const SIGN_INS = 75
/** Time in which a start has freed what it needed. */
const SETTLE_MS = 5_000

const MIB = 1024 ** 2

/** Upper bounds in MiB; of several processes, shared pages count once for each (design.md 8). */
const BOUNDS = {
  1: { users: 150, idle: 95, signedIn: 110, loaded: 160, peak: 215 },
  2: { users: 200, idle: 245, signedIn: 275, loaded: 330, peak: 460 },
}

type Report = ReturnType<typeof startReport>

export async function measureImage(report: Report, databaseUrl: string): Promise<void> {
  const cwd = await mkdtemp(join(tmpdir(), 'bench-image-'))
  try {
    await bundle('auth', cwd)
    const image = { cwd, args: ['--enable-source-maps', 'dist/main.js'] }
    await startCpu(report, () => startService(databaseUrl, {}, image))
    await measureMemory(report, databaseUrl, image, 1)
    await measureMemory(report, databaseUrl, image, 2)
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
}

async function measureMemory(report: Report, databaseUrl: string, image: Program, processes: keyof typeof BOUNDS) {
  const bounds = BOUNDS[processes]
  const service = await startService(databaseUrl, { AUTH_WEB_CONCURRENCY: String(processes) }, image)
  const row = (id: string, what: string, bytes: number, bound: number) =>
    report.row({
      id: `memory-${processes}-${id}`,
      what: `memory, ${processes === 1 ? 'one process' : `${processes} processes`}, ${what}`,
      against: 'the bound',
      unit: 'MiB',
      ours: bytes / MIB,
      theirs: bound,
      compared: 'ratio',
      goal: { atMost: 1 },
    })
  await sleep(SETTLE_MS)
  row('idle', 'idle', residentBytesOfAll(service.pid), bounds.idle)
  const users = await createUsers(service.base, 1, `first-of-${processes}`)
  await sleep(SETTLE_MS)
  row('signed-in', 'after the first sign-in', residentBytesOfAll(service.pid), bounds.signedIn)
  while (users.length < bounds.users) {
    users.push(...(await createUsers(service.base, CONCURRENCY, `memory-${processes}-${users.length}`)))
  }
  await runCalls(PAGES, CONCURRENCY, await pageReads(service.base, CONCURRENCY))
  await runCalls(SIGN_INS, CONCURRENCY, signIns(service.base, users, CONCURRENCY))
  row('loaded', 'after load', residentBytesOfAll(service.pid), bounds.loaded)
  row('peak', 'at its peak', peakBytesOfAll(service.pid), bounds.peak)
  await service.stop()
}

if (import.meta.main) {
  const dataDir = await mkdtemp(join(tmpdir(), 'bench-memory-'))
  const postgres = await startEmbeddedPostgres({ dataDir, database: 'bench' })
  const report = startReport('auth', [])
  try {
    await measureImage(report, postgres.url)
  } finally {
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
    report.print()
  }
}
