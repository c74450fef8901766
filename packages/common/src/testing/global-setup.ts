import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readdir, rm, statfs } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../dev/embedded-postgres.ts'
import { processBirth } from '../process-birth.ts'

declare module 'vitest' {
  interface ProvidedContext {
    databaseServerUrl: string
    /** Names this run's databases, so that runs sharing TEST_DATABASE_URL do not meet and leave nothing behind. */
    testRunId: string
  }
}

/**
 * One PostgreSQL for all test files: the server of TEST_DATABASE_URL, else an embedded one. Every temporary folder of the
 * run is inside one of its own, and gone afterwards.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const testRunId = `t${randomBytes(4).toString('hex')}`
  project.provide('testRunId', testRunId)
  await sweep(tmpdir(), SHARED_MEMORY)
  const folder = await makeFolder(tmpdir(), 'test-run')
  process.env.TMPDIR = folder
  // As `pnpm start` has it: half of each process a test starts would be spent on compiling.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../../../../node_modules/.cache/node', import.meta.url))
  const server = await provideServer(project)
  return async () => {
    await server.end(testRunId)
    await rm(folder, { recursive: true, force: true })
  }
}

async function provideServer(project: TestProject) {
  const given = process.env.TEST_DATABASE_URL
  if (given) {
    project.provide('databaseServerUrl', given)
    return { end: (testRunId: string) => dropRunDatabases(given, testRunId) }
  }
  const folder = await makeFolder(await fastestFolder(), 'test-postgres')
  // PostgreSQL runs as a user of its own when the tests run as root.
  await chmod(folder, 0o755)
  const server = await startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), durable: false, viaSocket: true })
  project.provide('databaseServerUrl', server.url)
  return {
    end: async () => {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Its name tells the process it belongs to, on this machine. */
const makeFolder = async (root: string, kind: string) =>
  mkdtemp(join(root, `${kind}-${hostname()}-${process.pid}-${await processBirth('self')}-`))

/** Removes what interrupted runs have left: their teardown never ran. */
async function sweep(...roots: string[]): Promise<void> {
  for (const root of roots) {
    for (const name of await readdir(root).catch(() => [])) {
      const [, host, pid, birth] = /^test-(?:run|postgres)-(.+)-(\d+)-(\d+)-[^-]+$/.exec(name) ?? []
      if (host !== hostname() || (await processBirth(Number(pid))) === birth) continue
      await rm(join(root, name), { recursive: true, force: true })
    }
  }
}

const SHARED_MEMORY = '/dev/shm'
const SPACE_NEEDED_BYTES = 2 * 1024 ** 3

/** A clone of the template costs 10 ms in shared memory and 80 ms on a disk; a container may have little of the former. */
async function fastestFolder(): Promise<string> {
  const space = await statfs(SHARED_MEMORY).catch(() => undefined)
  return space && space.bavail * space.bsize > SPACE_NEEDED_BYTES ? SHARED_MEMORY : tmpdir()
}

async function dropRunDatabases(serverUrl: string, testRunId: string) {
  const admin = new pg.Client({ connectionString: serverUrl })
  await admin.connect()
  const { rows } = await admin.query('select datname from pg_database where datname like $1', [`${testRunId}%`])
  for (const { datname } of rows) await admin.query(`drop database if exists ${datname} with (force)`)
  await admin.end()
}
