// Runs of the tests: their setup, output, needs, disturbance and repetition.
import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readdir, rm, statfs } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../dev/embedded-postgres.ts'
import { processBirth } from '../../process/process-identity.ts'
import { startPgbouncer } from '../database/pgbouncer.ts'
import { POOLER_ROLE } from '../database/template-database.ts'
import { PATIENCE_MS } from '../patience.ts'

declare module 'vitest' {
  interface ProvidedContext {
    databaseServerUrl: string
    /** PgBouncer in front of the same server, if the run has one. */
    poolerUrl: string | undefined
    /** Prefix of this run's databases, which separates runs that share TEST_DATABASE_URL. */
    testRunId: string
  }
}

/**
 * Provides one PostgreSQL for all test files: the server of TEST_DATABASE_URL, else an embedded one. All temporary
 * folders of the run are in one folder, removed afterwards.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const testRunId = `t${randomBytes(4).toString('hex')}`
  project.provide('testRunId', testRunId)
  await sweep(tmpdir(), SHARED_MEMORY)
  const folder = await makeFolder(tmpdir(), 'test-run')
  process.env.TMPDIR = folder
  // `pnpm start` sets it too: compiling takes half of each process that a test starts.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../../../../../node_modules/.cache/node', import.meta.url))
  const server = await provideServer(project)
  const stopPooler = await providePooler(project, server.url, `${testRunId}${POOLER_ROLE}`)
  return async () => {
    await stopPooler()
    await server.end(testRunId)
    await rm(folder, { recursive: true, force: true })
  }
}

async function provideServer(project: TestProject) {
  const given = process.env.TEST_DATABASE_URL
  if (given) {
    project.provide('databaseServerUrl', given)
    return { url: given, end: (testRunId: string) => dropRunDatabases(given, testRunId) }
  }
  const folder = await makeFolder(await fastestFolder(), 'test-postgres')
  // PostgreSQL runs as another user when the tests run as root.
  await chmod(folder, 0o755)
  const server = await startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), durable: false, viaSocket: true })
  project.provide('databaseServerUrl', server.url)
  return {
    url: server.url,
    end: async () => {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Starts PgBouncer if TEST_POOLER is set; small pools make clients share its connections. */
async function providePooler(project: TestProject, serverUrl: string, role: string): Promise<() => Promise<void>> {
  if (!process.env.TEST_POOLER) {
    project.provide('poolerUrl', undefined)
    return async () => {}
  }
  const password = randomBytes(16).toString('hex')
  await queryAsAdmin(serverUrl, [
    `create role ${role} superuser login password '${password}'`,
    `alter role ${role} set statement_timeout = ${PATIENCE_MS}`,
    `alter role ${role} set idle_in_transaction_session_timeout = ${PATIENCE_MS + 1_000}`,
  ])
  const settings = { default_pool_size: 8, server_idle_timeout: 2, max_client_conn: 1_000 }
  const pooler = await startPgbouncer(serverUrl, settings, { username: role, password })
  project.provide('poolerUrl', pooler.urlOf(serverUrl))
  return pooler.stop
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

/**
 * Chooses shared memory, where a clone of the template takes 10 ms instead of 80 ms, if the container has enough of it.
 */
async function fastestFolder(): Promise<string> {
  const space = await statfs(SHARED_MEMORY).catch(() => undefined)
  return space && space.bavail * space.bsize > SPACE_NEEDED_BYTES ? SHARED_MEMORY : tmpdir()
}

async function dropRunDatabases(serverUrl: string, testRunId: string) {
  const named = async (column: string, catalog: string) =>
    (
      await queryAsAdmin(serverUrl, [`select ${column} as name from ${catalog} where ${column} like '${testRunId}%'`])
    ).map(({ name }) => name)
  const databases = await named('datname', 'pg_database')
  await queryAsAdmin(
    serverUrl,
    databases.map((name) => `drop database if exists ${name} with (force)`),
  )
  await queryAsAdmin(
    serverUrl,
    (await named('rolname', 'pg_roles')).map((name) => `drop role ${name}`),
  )
}

/** Resolves to the rows of the last statement. */
async function queryAsAdmin(serverUrl: string, statements: string[]): Promise<{ name: string }[]> {
  const admin = new pg.Client({ connectionString: serverUrl })
  await admin.connect()
  try {
    let rows: { name: string }[] = []
    for (const statement of statements) rows = (await admin.query(statement)).rows
    return rows
  } finally {
    await admin.end()
  }
}
