// PostgreSQL from a package, for development and tests, without installation or container. However this process ends,
// its PostgreSQL ends too. First start and locks: postgres/postgres-data-dir.ts; processes: postgres-process.ts; system
// user: postgres-user.ts.
import type { ChildProcess } from 'node:child_process'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, escapeIdentifier } from 'pg'
import { findFreePort } from './dev-ports.ts'
import { initialiseOnce, type PostgresPlace, readPassword, waitForPredecessor } from './postgres/postgres-data-dir.ts'
import {
  collectLastLines,
  describeRefusal,
  doNotWaitFor,
  locatePostgresBinaries,
  type PostgresBinaries,
  spawnPostgres,
  stopPostgres,
} from './postgres/postgres-process.ts'
import { choosePostgresUser } from './postgres/postgres-user.ts'

export type EmbeddedPostgresOptions = {
  /** Data folder, missing or empty before the first start; its parent must be writable. */
  dataDir: string
  port?: number
  /** Database of the URL, created if missing. */
  database?: string
  /** `false` trades durability for speed, for tests. */
  durable?: boolean
  /** Whether the URL uses a socket in `dataDir`: faster, but only for pg clients on this machine and short paths. */
  viaSocket?: boolean
  log?: (line: string) => void
  /** Programs of another PostgreSQL than the package's. */
  binaries?: PostgresBinaries
  onUnexpectedExit?: (message: string) => void
}

export type EmbeddedPostgres = {
  url: string
  port: number
  pid: number
  /** Ends all connections and resolves when PostgreSQL has stopped; may be called again. */
  stop(): Promise<void>
}

const START_PATIENCE_MS = 60_000

/** Paths for the socket: the setting is a comma-separated list, and a socket's path has at most 107 bytes. */
const FIT_FOR_SOCKET = /^[\w./-]{1,85}$/

export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir)
  const durable = options.durable ?? true
  const place = {
    binaries: options.binaries ?? (await locatePostgresBinaries()),
    user: await choosePostgresUser(dataDir),
    dataDir,
  }
  refuseUnfitPath(place.binaries.postgres)
  await initialiseOnce(place, durable)
  await waitForPredecessor(dataDir)

  const socketDir = options.viaSocket && FIT_FOR_SOCKET.test(dataDir) ? dataDir : ''
  const settings = [...serverSettings(durable), `unix_socket_directories=${socketDir}`]
  const { child, port } = await startServer(place, options.port, settings, options.log ?? (() => {}))
  const password = await readPassword(dataDir)
  const urlOf = (database: string) =>
    `postgres://postgres:${password}@127.0.0.1:${port}/${database}${socketDir && `?host=${socketDir}`}`
  const database = options.database ?? 'postgres'
  const pid = child.pid as number
  doNotWaitFor(child)

  let stopping: Promise<void> | undefined
  child.once('exit', (code, signal) => {
    if (!stopping) options.onUnexpectedExit?.(`PostgreSQL (process ${pid}) ended unexpectedly: ${signal ?? code}`)
  })
  const stop = () => {
    stopping ??= stopPostgres(child)
    return stopping
  }
  try {
    await createDatabaseOnce(urlOf('postgres'), database)
  } catch (error) {
    await stop()
    throw error
  }
  return { url: urlOf(database), port, pid, stop }
}

/** Refuses paths that initdb's shell would interpret in double quotes. */
function refuseUnfitPath(program: string): void {
  if (!/["$`\\]/.test(program)) return
  throw new Error(`PostgreSQL does not run from a folder whose path contains one of " $ \` \\: ${program}`)
}

/** Retries two refusals: a port taken meanwhile, and shared memory of a killed predecessor's children. */
async function startServer(
  place: PostgresPlace,
  wantedPort: number | undefined,
  settings: string[],
  log: (line: string) => void,
) {
  const deadline = Date.now() + START_PATIENCE_MS
  while (true) {
    const port = wantedPort ?? (await findFreePort())
    const child = await spawnPostgres(place.user, place.dataDir, place.binaries.postgres, [
      '-D',
      place.dataDir,
      ...[`port=${port}`, ...settings].flatMap((setting) => ['-c', setting]),
    ])
    const refusal = await waitUntilReady(child, log)
    if (refusal === undefined) return { child, port }
    const isTemporary =
      refusal.includes('shared memory block') || (wantedPort === undefined && refusal.includes('could not bind'))
    if (!isTemporary || Date.now() > deadline) {
      throw new Error(`PostgreSQL did not start on ${place.dataDir}: ${describeRefusal(refusal.split('\n'))}`)
    }
    await sleep(200)
  }
}

function serverSettings(durable: boolean): string[] {
  const always = [
    'listen_addresses=127.0.0.1',
    'max_connections=200', // several services, workers and test files share one server
    'timezone=UTC',
    'log_timezone=UTC',
    'lc_messages=C', // `waitUntilReady` reads the log
  ]
  return durable ? always : [...always, 'fsync=off', 'synchronous_commit=off', 'full_page_writes=off']
}

/** Resolves to undefined once PostgreSQL accepts connections, or to its last lines when it ends. */
async function waitUntilReady(child: ChildProcess, log: (line: string) => void): Promise<string | undefined> {
  const { promise: ready, resolve: settle, reject } = Promise.withResolvers<string | undefined>()
  const lastLines = collectLastLines(child, (line) => {
    log(line)
    if (/database system is ready to accept (read-only )?connections/.test(line)) settle(undefined)
  })
  child.once('error', reject)
  child.once('close', () => settle(lastLines.join('\n') || 'no output'))
  const timer = setTimeout(() => child.kill('SIGQUIT'), START_PATIENCE_MS)
  return ready.finally(() => clearTimeout(timer))
}

async function createDatabaseOnce(adminUrl: string, name: string): Promise<void> {
  const client = new Client({ connectionString: adminUrl })
  await client.connect()
  try {
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [name])
    if (rowCount === 0) await client.query(`create database ${escapeIdentifier(name)}`)
  } finally {
    await client.end()
  }
}
