import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { commandAs, type PostgresUser } from './postgres-user.ts'

/** Fast shutdown takes well under a second; past this something is stuck in the kernel and we stop being polite. */
const STOP_PATIENCE_MS = 10_000

/**
 * Own process group: the terminal's Ctrl-C reaches the whole group, and PostgreSQL must outlive the requests in flight.
 * It still ends with this process, whatever ends that.
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
    env: { LC_ALL: 'C', TZ: 'UTC' }, // no PG* variable of ours may reach it
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  if (child.pid !== undefined) endWithThisProcess(child, child.pid)
  return child
}

/** The returned list is kept up to date with the newest twenty lines of the child's stderr. */
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

/** The lines in which PostgreSQL says why it gave up, without time and process; else the last thing it said. */
export function describeRefusal(lines: string[]): string {
  const reasons = lines.flatMap((line) => /\b(?:error|fatal|panic): +(.*)/i.exec(line)?.[1] ?? [])
  return reasons.join('; ') || lines.at(-1) || 'it said nothing'
}

/** A script that forgets to stop PostgreSQL may end all the same. */
export function doNotWaitFor(child: ChildProcess): void {
  for (const handle of [child, child.stderr]) unrefIfPossible(handle)
}

/**
 * A shell that waits for the end of its input, which comes when this process is gone, and then interrupts the child: it
 * covers process.exit, an uncaught error and kill -9 alike.
 */
function endWithThisProcess(child: ChildProcess, pid: number): void {
  const watchdog = spawn('sh', ['-c', 'read -r _; kill -INT "$1"', 'sh', String(pid)], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watchdog.once('error', () => {}) // no shell: the next start says which process is in the way
  child.once('exit', () => watchdog.kill('SIGKILL'))
  for (const handle of [watchdog, watchdog.stdin]) unrefIfPossible(handle)
}

/** A pipe is a socket underneath, which its type does not say. */
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
