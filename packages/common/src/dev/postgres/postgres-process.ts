import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { commandAs, type PostgresUser } from './postgres-user.ts'

/** Time limit of a fast shutdown, which usually takes less than a second. */
const STOP_PATIENCE_MS = 10_000

/**
 * Starts a program in its own process group: the terminal's Ctrl-C must not reach PostgreSQL while requests are in flight. It
 * still ends with this process.
 */
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

/** Lets this process exit without a stop of PostgreSQL. */
export function doNotWaitFor(child: ChildProcess): void {
  for (const handle of [child, child.stderr]) unrefIfPossible(handle)
}

/**
 * Starts a shell that interrupts the child when its input closes, at the end of this process: by process.exit, an uncaught error
 * or kill -9.
 */
function endWithThisProcess(child: ChildProcess, pid: number): void {
  const watchdog = spawn('sh', ['-c', 'read -r _; kill -INT "$1"', 'sh', String(pid)], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watchdog.once('error', () => {}) // without a shell the next start names the running process
  child.once('exit', () => watchdog.kill('SIGKILL'))
  for (const handle of [watchdog, watchdog.stdin]) unrefIfPossible(handle)
}

function unrefIfPossible(handle: object | null): void {
  if (handle && 'unref' in handle && typeof handle.unref === 'function') handle.unref()
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
