import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import { basename } from 'node:path'
import { SpanKind } from '@opentelemetry/api'
import { noteFailure, traced } from '@services/common/tracing'
import { type Sandbox, sandboxArgs } from './sandbox.ts'

/**
 * The one place that starts programs that read what strangers sent: ffmpeg, ffprobe, yt-dlp, and Node for parsers that may
 * not end. They get no environment, no terminal and no user's file name, run in a
 * process group of their own, and never outlive their limits, their caller's signal or this process. Without network and
 * apart from other processes they are where a sandbox works: see sandbox.ts.
 */
export interface RunLimits {
  wallSeconds: number
  cpuSeconds: number
  memoryBytes: number
  /** Of any one file written. */
  fileBytes: number
}

/** Programs that limit the next one in line; null where the machine lacks them. */
export interface Limiters {
  /** Wall limits are so many times as long: tests share a machine that is busy. 1 if absent. */
  wallFactor?: number
  nice: string | null
  prlimit: string | null
  setpriv: string | null
  sandbox: Sandbox | null
}

export interface RunOptions {
  limits: RunLimits
  limiters: Limiters
  /** Where relative file names are. */
  cwd: string
  signal?: AbortSignal | undefined
  /** 10 where nothing else is said; 19 gets what nobody else wants. */
  niceness?: number | undefined
  /** Beside what all of them get. */
  environment?: Record<string, string>
  /** More on stdout ends the program; 8 Mi if absent. */
  outputCharacters?: number
  /** Gets stdout line by line; without it stdout is kept and returned. */
  onLine?: (line: string) => void
}

export type RunOutcome =
  | { state: 'done'; stdout: string; stderr: string }
  /** Either an exit code, or the signal that ended it: a crash, the memory killer, or the CPU limit. */
  | { state: 'failed'; exitCode: number | null; signal: NodeJS.Signals | null; stderr: string }
  | { state: 'timed-out'; stderr: string }
  | { state: 'too-much-output' }

/** None of them needs more, and a broken decoder shall find nothing of ours (tokens, database address) in it. */
export const isolatedEnvironment = { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C' }

/** Enough for the end of a log, which tells the reason; a hostile file can make ffmpeg write megabytes. */
const STDERR_TAIL_CHARACTERS = 16_384
/** 3700 packets of each of a few streams take under 1 MB of JSON. */
const STDOUT_CHARACTERS = 8 * 1024 * 1024

/**
 * Runs a program to its end. Every end of the program is an outcome; it rejects only when the program cannot
 * be started, or with the signal's reason, and then the program is gone already.
 */
export function runConfined(path: string, args: readonly string[], options: RunOptions): Promise<RunOutcome> {
  const name = basename(path)
  const attributes = { 'process.executable.name': name }
  return traced({ scope: 'programs', name, kind: SpanKind.CLIENT, attributes }, async (span) => {
    const outcome = await run(path, args, options)
    if (outcome.state === 'done') span?.setAttribute('process.exit.code', 0)
    else if (outcome.state !== 'failed') noteFailure(span, outcome.state)
    else {
      if (outcome.exitCode !== null) span?.setAttribute('process.exit.code', outcome.exitCode)
      noteFailure(span, outcome.signal ?? String(outcome.exitCode))
    }
    return outcome
  })
}

function run(path: string, args: readonly string[], options: RunOptions): Promise<RunOutcome> {
  const { signal, onLine, limiters, limits } = options
  signal?.throwIfAborted()
  const [command, ...commandArgs] = [...limiterArgs(options), path, ...args] as [string]
  const child = spawn(command, commandArgs, {
    cwd: options.cwd,
    env: { ...isolatedEnvironment, ...options.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })

  return new Promise((resolve, reject) => {
    let stdout = ''
    let stderr = ''
    let stopped: 'aborted' | 'timed-out' | 'too-much-output' | undefined

    const stop = (reason: typeof stopped) => {
      if (stopped) return
      stopped = reason
      killGroup(child)
    }
    const wallTimer = setTimeout(() => stop('timed-out'), limits.wallSeconds * 1000 * (limiters.wallFactor ?? 1))
    const onAbort = () => stop('aborted')
    signal?.addEventListener('abort', onAbort, { once: true })
    const release = () => {
      clearTimeout(wallTimer)
      signal?.removeEventListener('abort', onAbort)
    }

    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-STDERR_TAIL_CHARACTERS)
    })
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      if (onLine) {
        const lines = stdout.split('\n')
        stdout = lines.pop() ?? ''
        for (const line of lines) onLine(line)
      }
      if (stdout.length > (options.outputCharacters ?? STDOUT_CHARACTERS)) stop('too-much-output')
    })
    child.on('error', (error) => {
      release()
      reject(error)
    })
    child.on('close', (exitCode, killedBy) => {
      release()
      if (stopped === 'aborted') return reject(signal?.reason)
      if (stopped === 'timed-out') return resolve({ state: 'timed-out', stderr })
      if (stopped === 'too-much-output') return resolve({ state: 'too-much-output' })
      if (exitCode === 0) return resolve({ state: 'done', stdout, stderr })
      resolve({ state: 'failed', ...endOf(exitCode, killedBy), stderr })
    })
  })
}

/**
 * The programs put in front, each of which becomes or holds the next one: low priority so that the API stays quick on a
 * shared machine, death with this process (a killed worker leaves no encoder behind), no way to gain rights, the sandbox,
 * and the kernel's limits.
 */
export function limiterArgs({
  limiters,
  limits,
  cwd,
  niceness = 10,
}: Pick<RunOptions, 'limiters' | 'limits' | 'cwd' | 'niceness'>): string[] {
  const cpu = Math.ceil(limits.cpuSeconds)
  // A probe has no business in the directory where other uploads are on their way.
  const writable = limits.fileBytes > 0 ? [cwd] : []
  return [
    ...(limiters.nice ? [limiters.nice, '-n', String(niceness)] : []),
    ...(limiters.setpriv ? [limiters.setpriv, ...SETPRIV_ARGS] : []),
    ...(limiters.sandbox ? sandboxArgs(limiters.sandbox, { cwd, writable }) : []),
    ...(limiters.prlimit
      ? [
          limiters.prlimit,
          `--as=${limits.memoryBytes}`,
          `--cpu=${cpu}`,
          `--fsize=${limits.fileBytes}`,
          '--nofile=64',
          '--core=0',
        ]
      : []),
  ]
}

export const SETPRIV_ARGS = ['--no-new-privs', '--pdeathsig', 'KILL']

/** A sandbox in between says which signal ended the program as a shell does: 139 is 128 and SIGSEGV. */
function endOf(exitCode: number | null, killedBy: NodeJS.Signals | null) {
  const name = Object.entries(constants.signals).find(([, number]) => exitCode === 128 + number)?.[0]
  return name ? { exitCode: null, signal: name as NodeJS.Signals } : { exitCode, signal: killedBy }
}

/**
 * The whole group, which only exists once the program has started. At once and for good: what it wrote is thrown
 * away.
 */
function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // It ended by itself in between.
  }
}
