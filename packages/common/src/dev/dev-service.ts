import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ReadyMessage } from './dev-child.ts'

export type DevService = {
  name: string
  /** Resolves to the banner lines; rejects when the service ends before it is ready. */
  ready: Promise<string[]>
  /** Resolves to the reason of the end and whether it was clean (exit code 0). Never rejects. */
  ended: Promise<{ isClean: boolean; how: string }>
  /** Sends SIGTERM, kills after STOP_PATIENCE_MS, and resolves when no process of it runs. */
  stop(): Promise<void>
}

/** Time limit of a stop, in which a service finishes requests and returns its jobs. */
const STOP_PATIENCE_MS = 15_000

/** Runs a service's `src/dev.ts` in its own process group: Ctrl-C as a second signal would cut its shutdown short. */
export function startDevService(
  name: string,
  folder: string,
  env: NodeJS.ProcessEnv,
  print: (line: string) => void,
): DevService {
  const child = spawn(process.execPath, ['src/dev.ts'], {
    cwd: folder,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const ended = waitForEnd(child)
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) createInterface({ input: stream }).on('line', print)
  }
  return { name, ready: waitForReady(child, ended), ended, stop: () => stop(child, ended) }
}

function waitForReady(child: ChildProcess, ended: DevService['ended']): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>()
  child.on('message', (message) => resolve((message as ReadyMessage).banner))
  void ended.then(({ how }) => reject(new Error(`ended before it was ready: ${how}`)))
  promise.catch(() => {}) // `ended` reports it
  return promise
}

async function waitForEnd(child: ChildProcess): DevService['ended'] {
  try {
    const lastWords = once(child, 'close')
    const [code, signal] = await once(child, 'exit')
    await Promise.race([lastWords, sleep(500)]) // a grandchild may hold the pipes open
    return { isClean: code === 0, how: signal ? `killed by ${signal}` : `exit code ${code}` }
  } catch (error) {
    return { isClean: false, how: error instanceof Error ? error.message : String(error) }
  }
}

async function stop(child: ChildProcess, ended: DevService['ended']): Promise<void> {
  child.kill('SIGTERM')
  const impatience = setTimeout(() => killGroup(child), STOP_PATIENCE_MS)
  await ended
  clearTimeout(impatience)
  killGroup(child) // its remaining children
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
