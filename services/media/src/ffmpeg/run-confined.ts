import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { constants } from 'node:os'
import { basename } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { SpanKind } from '@opentelemetry/api'
import { recordFailure, traced } from '@services/common/telemetry/spans'
import { type Sandbox, sandboxArgs } from './sandbox.ts'

/**
 * This folder finds ffmpeg and its helpers (binaries.ts) and starts every program that reads untrusted bytes. These are
 * ffmpeg, ffprobe, yt-dlp, and Node for parsers that may not end. Such a program gets no environment, terminal or
 * user's file name, and never outlives its limits, its caller's signal or this process. Where a sandbox works
 * (sandbox.ts) it also has no network and sees no other process. Tests: ../make/transcode/run-confined.slow.test.ts.
 */
export interface RunLimits {
  wallSeconds: number
  cpuSeconds: number
  memoryBytes: number
  fileBytes: number
}

/** Programs that limit the one they start; null where the machine lacks them. */
export interface Limiters {
  /** Multiplies wall limits for tests on a busy machine; 1 if absent. */
  wallFactor?: number
  nice: string | null
  prlimit: string | null
  setpriv: string | null
  sandbox: Sandbox | null
}

export interface RunOptions {
  limits: RunLimits
  limiters: Limiters
  cwd: string
  signal?: AbortSignal | undefined
  /** 10 if absent; 19 runs only when the machine is idle. */
  niceness?: number | undefined
  environment?: Record<string, string>
  /** Longer stdout ends the program; 8 Mi if absent. */
  outputCharacters?: number
  /** Receives stdout line by line; if absent, stdout is kept and returned. */
  onLine?: (line: string) => void
  /** Receives stderr line by line, of long lines the beginning; its end is returned all the same. */
  onLogLine?: (line: string) => void
  /** Receives the pipe to the program's standard input as soon as it runs; without it, that is empty. */
  onInput?: (input: Writable) => void
  /** Becomes file 0 of this program, and belongs to it alone: the input of another program, which this one writes. */
  outputTo?: Writable
}

export type RunOutcome =
  | { state: 'done'; stdout: string; stderr: string }
  /** Either an exit code, or the signal that ended it: a crash, the memory killer, or the CPU limit. */
  | { state: 'failed'; exitCode: number | null; signal: NodeJS.Signals | null; stderr: string }
  | { state: 'timed-out'; stderr: string }
  | { state: 'too-much-output' }

/** Holds no secret (tokens, database address) for an exploited decoder to find. */
export const isolatedEnvironment = { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C' }

/** Enough for the end of a log, which has the reason; a hostile file can make ffmpeg write megabytes. */
const STDERR_TAIL_CHARACTERS = 16_384
/** 3700 packets of each of a few streams take under 1 MB of JSON. */
const STDOUT_CHARACTERS = 8 * 1024 * 1024

/** Runs a program to its end. Rejects only when it cannot be started, or with the signal's reason once it is dead. */
export function runConfined(path: string, args: readonly string[], options: RunOptions): Promise<RunOutcome> {
  const name = basename(path)
  const attributes = { 'process.executable.name': name }
  return traced({ scope: 'programs', name, kind: SpanKind.CLIENT, attributes }, async (span) => {
    const outcome = await run(path, args, options)
    if (outcome.state === 'done') span?.setAttribute('process.exit.code', 0)
    else if (outcome.state !== 'failed') recordFailure(span, outcome.state)
    else {
      if (outcome.exitCode !== null) span?.setAttribute('process.exit.code', outcome.exitCode)
      recordFailure(span, outcome.signal ?? String(outcome.exitCode))
    }
    return outcome
  })
}

function run(path: string, args: readonly string[], options: RunOptions): Promise<RunOutcome> {
  const { signal, onLine, onLogLine, onInput, outputTo, limiters, limits } = options
  signal?.throwIfAborted()
  const [command, ...commandArgs] = [...limiterArgs(options), path, ...args] as [string]
  const child = spawn(command, commandArgs, {
    cwd: options.cwd,
    env: { ...isolatedEnvironment, ...options.environment },
    // A pipe blocks as file 0 only; as another one it would make the program poll.
    stdio: [outputTo ?? (onInput ? 'pipe' : 'ignore'), 'pipe', 'pipe'],
    detached: true,
  }) as ChildProcessByStdio<Writable | null, Readable, Readable>
  // The last copy here: the other program sees the end when this one ends.
  outputTo?.destroy()
  if (child.stdin) {
    // A program may end before its input does, and then its outcome has the reason.
    child.stdin.on('error', () => {})
    onInput?.(child.stdin)
  }

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

    let logLine = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-STDERR_TAIL_CHARACTERS)
      if (!onLogLine) return
      const lines = (logLine + text).split('\n')
      logLine = (lines.pop() ?? '').slice(0, STDERR_TAIL_CHARACTERS)
      for (const line of lines) onLogLine(line)
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
      if (logLine) onLogLine?.(logLine)
      if (stopped === 'aborted') return reject(signal?.reason)
      if (stopped === 'timed-out') return resolve({ state: 'timed-out', stderr })
      if (stopped === 'too-much-output') return resolve({ state: 'too-much-output' })
      if (exitCode === 0) return resolve({ state: 'done', stdout, stderr })
      resolve({ state: 'failed', ...endOf(exitCode, killedBy), stderr })
    })
  })
}

/**
 * The limiters in front of a program. nice keeps the API quick. setpriv ties the program to this process, so that a
 * killed worker leaves no encoder, and bars new privileges. Then come the sandbox and the kernel's limits.
 */
export function limiterArgs({
  limiters,
  limits,
  cwd,
  niceness = 10,
}: Pick<RunOptions, 'limiters' | 'limits' | 'cwd' | 'niceness'>): string[] {
  const cpu = Math.ceil(limits.cpuSeconds)
  // A probe writes nothing, so it gets no write access to the directory of other uploads.
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

/** A sandbox reports the signal that ended the program as a shell does: 139 is 128 + SIGSEGV. */
function endOf(exitCode: number | null, killedBy: NodeJS.Signals | null) {
  const name = Object.entries(constants.signals).find(([, number]) => exitCode === 128 + number)?.[0]
  return name ? { exitCode: null, signal: name as NodeJS.Signals } : { exitCode, signal: killedBy }
}

/** Kills at once, because the output is discarded. The group exists only once the program has started. */
function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // The program has ended meanwhile.
  }
}
