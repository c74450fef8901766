// A real PostgreSQL out of a package, for development and tests: no installation, no container.
// The one rule: nothing is left behind. However this process ends, its PostgreSQL ends too.
// First start and locks: postgres/postgres-data-dir.ts. Starting, ending: postgres-process.ts. As whom: postgres-user.ts.
import type { ChildProcess } from 'node:child_process'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, escapeIdentifier } from 'pg'
import { findFreePort, requireFreePorts } from './dev-ports.ts'
import { locatePostgresBinaries, type PostgresBinaries } from './postgres/postgres-binaries.ts'
import { initialiseOnce, type PostgresPlace, readPassword, waitForPredecessor } from './postgres/postgres-data-dir.ts'
import {
  collectLastLines,
  describeRefusal,
  doNotWaitFor,
  spawnPostgres,
  stopPostgres,
} from './postgres/postgres-process.ts'
import { choosePostgresUser } from './postgres/postgres-user.ts'

export type EmbeddedPostgresOptions = {
  /** Filled by the first start, kept by the next ones. May be missing or empty; its parent must be writable. */
  dataDir: string
  /** A free one when absent. */
  port?: number
  /** The variable to name when `port` is taken. */
  portVariable?: string
  /** Created when missing; the URL leads to it. */
  database?: string
  /** `false` gives up surviving a power cut for speed: for tests. */
  durable?: boolean
  /** The URL leads through a socket in `dataDir` where its path can carry one: quicker, and of use to this machine's pg clients alone. */
  viaSocket?: boolean
  /** Gets each line of PostgreSQL's own log. */
  log?: (line: string) => void
  /** Programs of another PostgreSQL; those of the package when absent. */
  binaries?: PostgresBinaries
  /** Called when PostgreSQL ends without `stop` having been called. */
  onUnexpectedExit?: (message: string) => void
}

export type EmbeddedPostgres = {
  url: string
  port: number
  pid: number
  /** Ends all connections and returns when PostgreSQL has stopped. Calling it again is harmless. */
  stop(): Promise<void>
}

const START_PATIENCE_MS = 60_000

/** The setting separates folders by commas, and the system takes paths of 107 bytes, with `/.s.PGSQL.` and the port. */
const FIT_FOR_SOCKET = /^[\w./-]{1,85}$/

export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir)
  const durable = options.durable ?? true
  if (options.port !== undefined) {
    await requireFreePorts([{ port: options.port, variable: options.portVariable }])
  }
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
    if (!stopping) options.onUnexpectedExit?.(`PostgreSQL (process ${pid}) ended by itself: ${signal ?? code}`)
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

/** initdb calls the server through a shell, in double quotes. */
function refuseUnfitPath(program: string): void {
  if (!/["$`\\]/.test(program)) return
  throw new Error(`PostgreSQL does not work in a folder whose path has one of " $ \` \\: ${program}`)
}

/** Two refusals pass by themselves: a port lost to somebody else, and children of a killed predecessor still leaving. */
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
    const passes =
      refusal.includes('shared memory block') || (wantedPort === undefined && refusal.includes('could not bind'))
    if (!passes || Date.now() > deadline) {
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

/** Returns undefined once connections are accepted, or what PostgreSQL said before it gave up. */
async function waitUntilReady(child: ChildProcess, log: (line: string) => void): Promise<string | undefined> {
  const { promise: ready, resolve: settle, reject } = Promise.withResolvers<string | undefined>()
  const lastLines = collectLastLines(child, (line) => {
    log(line)
    // A standby takes read-only connections.
    if (/database system is ready to accept (read-only )?connections/.test(line)) settle(undefined)
  })
  child.once('error', reject)
  child.once('close', () => settle(lastLines.join('\n') || 'no word from it'))
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
