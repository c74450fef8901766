import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { programOf } from '@services/common/testing/run/program'
import { expect, vi } from 'vitest'
import { startFlags } from './start-flags.ts'

export interface ServiceProcess {
  child: ChildProcess
  pid: number
  url: string
  /** Exit code, or the signal that ended it. */
  ended: Promise<number | string | null>
}

/** Polls like `expect.poll`, which concurrent tests cannot use. */
export const eventually = (read: () => unknown, expected: unknown, timeout = 60_000) =>
  vi.waitFor(async () => expect(await read()).toEqual(expected), { timeout, interval: 50 })

/**
 * `serve` in a process of its own, on a port the system gives it: one that is free now may be another test's by then.
 */
export async function startServe(
  settings: Record<string, string>,
  limits: ProcessLimits = {},
): Promise<ServiceProcess> {
  const listening = { MEDIA_HOST: '127.0.0.1', MEDIA_PORT: '0', MEDIA_LOG_LEVEL: 'info' }
  const started = run([programOf('media', 'main')], { ...settings, ...listening }, limits)
  const url = await new Promise<string>((resolve, reject) => {
    let output = ''
    started.child.stdout?.on('data', (chunk) => {
      output = (output + chunk).slice(-10_000)
      const [, found] = /listening at (http:[^"]+)"/.exec(output) ?? []
      if (found) resolve(found)
    })
    started.child.once('exit', () => reject(new Error(`the service did not start: ${output}`)))
  })
  return { ...started, url }
}

/** `worker` in a process of its own. */
export const startWorkerProcess = (settings: Record<string, string>) =>
  run([programOf('media', 'cli'), 'worker'], settings)

interface ProcessLimits {
  /** File size limit in blocks of 512 bytes: a larger write fails as on a full disk. */
  fileBlocks?: number
}

function run(args: string[], settings: Record<string, string>, { fileBlocks }: ProcessLimits = {}) {
  const limit = fileBlocks === undefined ? '' : `ulimit -f ${fileBlocks}; `
  const command = [process.execPath, ...startFlags, ...args]
  const child = spawn('sh', ['-c', `${limit}exec "$@"`, 'sh', ...command], {
    cwd: join(import.meta.dirname, '..'),
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  // Drains the output, so that a full pipe never blocks the process.
  child.stdout?.resume()
  const ended = once(child, 'exit').then(([code, signal]) => code ?? signal)
  return { child, pid: child.pid as number, url: '', ended }
}

/** Resident memory in bytes: now, and at its peak since `resetPeak`. */
export async function readMemory(pid: number): Promise<{ now: number; peak: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const kilobytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024
  return { now: kilobytes('VmRSS'), peak: kilobytes('VmHWM') }
}

export const resetPeak = (pid: number) => writeFile(`/proc/${pid}/clear_refs`, '5')
