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
    /** Prefix of this run's databases, which separates runs that share TEST_DATABASE_URL. */
    testRunId: string
  }
}

/**
 * Provides one PostgreSQL for all test files: the server of TEST_DATABASE_URL, else an embedded one. All temporary folders of the run
 * are in one folder, removed afterwards.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const testRunId = `t${randomBytes(4).toString('hex')}`
  project.provide('testRunId', testRunId)
  await sweep(tmpdir(), SHARED_MEMORY)
  const folder = await makeFolder(tmpdir(), 'test-run')
  process.env.TMPDIR = folder
  // `pnpm start` sets it too: compiling takes half of each process that a test starts.
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
  // PostgreSQL runs as another user when the tests run as root.
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

/** Makes a folder whose name identifies this machine and process. */
const makeFolder = async (root: string, kind: string) =>
  mkdtemp(join(root, `${kind}-${hostname()}-${process.pid}-${await processBirth('self')}-`))

/** Removes the folders of interrupted runs. */
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

/** Chooses shared memory, where a clone of the template takes 10 ms instead of 80 ms, if the container has enough of it. */
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
