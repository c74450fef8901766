import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chown, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAlive } from '../../process-birth.ts'
import type { PostgresBinaries } from './postgres-binaries.ts'
import { collectLastLines, describeRefusal, spawnPostgres } from './postgres-process.ts'
import type { PostgresUser } from './postgres-user.ts'

export type PostgresPlace = { binaries: PostgresBinaries; user: PostgresUser; dataDir: string }

/** A PostgreSQL whose parent was killed a moment ago is on its way out; it gets this long before we call it foreign. */
const PREDECESSOR_PATIENCE_MS = 3_000

/** Made up by the first start and kept with the data; PostgreSQL ignores a file it does not know. */
export const PASSWORD_FILE = 'superuser-password'

export const readPassword = async (dataDir: string) => (await readFile(join(dataDir, PASSWORD_FILE), 'utf8')).trim()

/** initdb works in a folder beside the data and the result is renamed: an interrupted first start is simply redone. */
export async function initialiseOnce(place: PostgresPlace, durable: boolean): Promise<void> {
  const { dataDir, user } = place
  if (await isInitialised(dataDir)) return
  await removeUnfinished(dataDir)
  await mkdir(dirname(dataDir), { recursive: true })
  const unfinished = await mkdtemp(`${dataDir}.unfinished-`)
  const passwordFile = `${unfinished}.password` // initdb insists on an empty folder
  await writeFile(passwordFile, `${randomBytes(16).toString('hex')}\n`, { mode: 0o600 })
  if (user.uid !== undefined && user.gid !== undefined) {
    await chown(unfinished, user.uid, user.gid)
    await chown(passwordFile, user.uid, user.gid)
  }
  await runInitdb(place, unfinished, passwordFile, durable)
  await rename(passwordFile, join(unfinished, PASSWORD_FILE))
  await rename(unfinished, dataDir)
}

/** An initdb whose parent was killed may still write for a moment: what resists removal now goes at the next start. */
async function removeUnfinished(dataDir: string): Promise<void> {
  const parent = dirname(dataDir)
  const leftovers = (await readdir(parent).catch((): string[] => [])).filter((name) =>
    name.startsWith(`${basename(dataDir)}.unfinished`),
  )
  for (const name of leftovers) await rm(join(parent, name), { recursive: true, force: true }).catch(() => {})
}

async function isInitialised(dataDir: string): Promise<boolean> {
  const entries = await readdir(dataDir).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === 'ENOENT') return []
    if (error.code === 'EACCES') throw new Error(`${dataDir} belongs to another user (an earlier start as root?).`)
    throw error
  })
  if (entries.length === 0) return false
  if (entries.includes('PG_VERSION')) return true
  throw new Error(`${dataDir} holds files but no PostgreSQL data. Name another folder, or remove it.`)
}

async function runInitdb(place: PostgresPlace, folder: string, passwordFile: string, durable: boolean): Promise<void> {
  const child = await spawnPostgres(place.user, place.dataDir, place.binaries.initdb, [
    `--pgdata=${folder}`,
    '--username=postgres',
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--set=scram_iterations=1', // repeating slows guessing down, and there is none at 128 random bits
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin', // the same sorting on every machine, whatever locales it has
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
  ])
  const lastLines = collectLastLines(child, () => {})
  const [code, signal] = await once(child, 'close')
  if (code !== 0) {
    const how = `PostgreSQL could not make its data in ${place.dataDir} (initdb, ${signal ?? `code ${code}`})`
    throw new Error(`${how}: ${describeRefusal(lastLines)}`)
  }
}

/**
 * postmaster.pid outlives a kill -9. PostgreSQL recognises a dead number itself, but not one that a stranger carries by
 * now (usual in containers, where numbers start from 1 each time); and a live predecessor may still be shutting down.
 */
export async function waitForPredecessor(dataDir: string): Promise<void> {
  const lockFile = join(dataDir, 'postmaster.pid')
  const deadline = Date.now() + PREDECESSOR_PATIENCE_MS
  while (true) {
    const pid = Number.parseInt(await readFile(lockFile, 'utf8').catch(() => ''), 10)
    if (!(pid > 0) || !isAlive(pid)) return
    if (!(await isPostgres(pid))) return rm(lockFile, { force: true })
    if (Date.now() > deadline) {
      throw new Error(`${dataDir} is in use by a running PostgreSQL. Stop it first: kill -INT ${pid}`)
    }
    await sleep(50)
  }
}

/** A zombie is none: nothing reaps it in a container without init. Without /proc (macOS) the answer is a cautious yes. */
async function isPostgres(pid: number): Promise<boolean> {
  if (process.platform !== 'linux') return true
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return /^Name:\s*postgres$/m.test(status) && !/^State:\s*Z/m.test(status)
}
