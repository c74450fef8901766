import { type ChildProcess, spawn } from 'node:child_process'

/**
 * The one place that starts ffmpeg and ffprobe. They see no environment, no terminal and no user's file name, run in a
 * process group of their own, and never outlive their limits, their caller's signal or this process.
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
  nice: string | null
  prlimit: string | null
  setpriv: string | null
}

export interface RunOptions {
  limits: RunLimits
  limiters: Limiters
  /** Where relative file names are. */
  cwd: string
  signal?: AbortSignal | undefined
  /** Gets stdout line by line; without it stdout is kept and returned. */
  onLine?: (line: string) => void
}

export type RunOutcome =
  | { state: 'done'; stdout: string; stderr: string }
  /** Either an exit code, or the signal that ended it: a crash, the memory killer, or the CPU limit. */
  | { state: 'failed'; exitCode: number | null; signal: NodeJS.Signals | null; stderr: string }
  | { state: 'timed-out'; stderr: string }
  | { state: 'too-much-output' }

/** Neither program needs more; nothing of ours (tokens, database address) may be readable from a broken decoder. */
export const isolatedEnvironment = { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C' }

/** Enough for the end of a log, which tells the reason; a hostile file can make ffmpeg write megabytes. */
const STDERR_TAIL_CHARACTERS = 16_384
/** 3700 packets of each of a few streams take under 1 MB of JSON. */
const STDOUT_CHARACTERS = 8 * 1024 * 1024
/** ffmpeg closes its files on SIGTERM, which takes milliseconds; a hanging one gets no more than this. */
const KILL_AFTER_MS = 2000

/**
 * Runs ffmpeg or ffprobe to its end. Every end of the program is an outcome; it rejects only when the program cannot
 * be started, or with the signal's reason, and then the program is gone already.
 */
export function runFfmpeg(path: string, args: readonly string[], options: RunOptions): Promise<RunOutcome> {
  const { signal, onLine } = options
  signal?.throwIfAborted()
  const [command, ...commandArgs] = [...limiterArgs(options.limiters, options.limits), path, ...args] as [string]
  const child = spawn(command, commandArgs, {
    cwd: options.cwd,
    env: isolatedEnvironment,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })

  return new Promise((resolve, reject) => {
    let stdout = ''
    let stderr = ''
    let stopped: 'aborted' | 'timed-out' | 'too-much-output' | undefined
    let killTimer: NodeJS.Timeout | undefined

    const stop = (reason: typeof stopped) => {
      if (stopped) return
      stopped = reason
      killGroup(child, 'SIGTERM')
      killTimer = setTimeout(() => killGroup(child, 'SIGKILL'), KILL_AFTER_MS)
    }
    const wallTimer = setTimeout(() => stop('timed-out'), options.limits.wallSeconds * 1000)
    const onAbort = () => stop('aborted')
    signal?.addEventListener('abort', onAbort, { once: true })
    const release = () => {
      clearTimeout(wallTimer)
      clearTimeout(killTimer)
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
      if (stdout.length > STDOUT_CHARACTERS) stop('too-much-output')
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
      resolve({ state: 'failed', exitCode, signal: killedBy, stderr })
    })
  })
}

/**
 * The programs put in front, each of which becomes the next one: low priority so that the API stays quick on a shared
 * machine, death with this process (a killed worker leaves no encoder behind), and the kernel's limits.
 */
function limiterArgs(limiters: Limiters, limits: RunLimits): string[] {
  const cpu = Math.ceil(limits.cpuSeconds)
  return [
    ...(limiters.nice ? [limiters.nice, '-n', '10'] : []),
    ...(limiters.setpriv ? [limiters.setpriv, '--pdeathsig', 'KILL'] : []),
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

/** The whole group, which only exists once the program has started. */
function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // It ended by itself in between.
  }
}
