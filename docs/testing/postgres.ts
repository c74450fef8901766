import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, chown, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startEmbeddedPostgres } from '../../packages/common/src/dev/embedded-postgres.ts'
import { PASSWORD_FILE } from '../../packages/common/src/dev/postgres/postgres-data-dir.ts'
import { choosePostgresUser } from '../../packages/common/src/dev/postgres/postgres-user.ts'

const run = promisify(execFile)

/** Debian's folder of the programs of each version. */
const DEBIAN = '/usr/lib/postgresql'

export interface DatabaseServer {
  url: string
  /** Folder of a pg_dump that can dump this server; undefined if the machine has none. */
  tools: string | undefined
  stop(): Promise<void>
}

/**
 * Starts a server that can be dumped, if the machine has one. The embedded PostgreSQL has no pg_dump, and Debian's
 * refuses newer servers, so Debian's server is started then. The server is never shared: restoring creates databases
 * that must not be left on another one.
 */
export async function startDatabaseServer(): Promise<DatabaseServer> {
  const [debian] = await findDebians()
  const folder = await mkdtemp(join(tmpdir(), 'guide-postgres-'))
  // PostgreSQL refuses to run as root, so it gets another user when the tests run as root.
  await chmod(folder, 0o755)
  const dataDir = join(folder, 'postgres')
  const hasServer = debian !== undefined && (await isProgram(join(debian, 'postgres')))
  const binaries = hasServer ? await initialise(debian, dataDir) : undefined
  const server = await startEmbeddedPostgres({ dataDir, durable: false, ...(binaries ? { binaries } : {}) })
  const stop = async () => {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
  return { url: server.url, tools: hasServer ? debian : await toolsFor(server.url, debian), stop }
}

/** Initializes a data folder like the embedded server, for an initdb too old for some of its options. */
async function initialise(debian: string, dataDir: string) {
  const user = await choosePostgresUser(dataDir)
  const passwordFile = `${dataDir}.password`
  await mkdir(dataDir)
  await writeFile(passwordFile, `${randomBytes(16).toString('hex')}\n`)
  if (user.uid !== undefined && user.gid !== undefined) {
    for (const path of [dataDir, passwordFile]) await chown(path, user.uid, user.gid)
  }
  const initdb = join(debian, 'initdb')
  const how = [
    '--username=postgres',
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
  ]
  await run(initdb, [`--pgdata=${dataDir}`, ...how, '--no-sync'], { cwd: '/', ...user })
  await rename(passwordFile, join(dataDir, PASSWORD_FILE))
  return { initdb, postgres: join(debian, 'postgres') }
}

/** Reports whether this pg_dump can dump the server, by a dump of the catalogue alone. */
async function toolsFor(url: string, folder: string | undefined): Promise<string | undefined> {
  if (!folder) return undefined
  const isUnderstood = await run(join(folder, 'pg_dump'), ['--schema-only', url]).then(
    () => true,
    () => false,
  )
  return isUnderstood ? folder : undefined
}

/** Debian's versions, newest first. */
async function findDebians(): Promise<string[]> {
  const versions = (await readdir(DEBIAN).catch(() => [])).sort((a, b) => Number(b) - Number(a))
  const folders = versions.map((version) => join(DEBIAN, version, 'bin'))
  const found = await Promise.all(folders.map((folder) => isProgram(join(folder, 'pg_dump'))))
  return folders.filter((_, index) => found[index])
}

const isProgram = (path: string) =>
  run(path, ['--version']).then(
    () => true,
    () => false,
  )
