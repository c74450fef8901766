import { ApiError } from '@services/common/errors'
import type { MediaInfo } from '../../db/media-info.ts'
import { apiError } from '../../errors.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { isDiskFull, MACHINE_FAULT } from '../../ffmpeg/machine-faults.ts'
import { type RunOutcome, runConfined } from '../../ffmpeg/run-confined.ts'
import { runLimits } from './rendition-plan.ts'

/** One clip on its way: what every step needs. */
export interface TranscodeWork {
  tools: MediaTools
  info: MediaInfo
  workDirectory: string
  threads: number
  signal?: AbortSignal | undefined
  onProgress?: ((fraction: number) => void) | undefined
}

type FailedRun = Extract<RunOutcome, { state: 'failed' }>

/** Share of the whole that is over when encoding starts and ends; the rest is overview and verification. */
const [ENCODE_FROM, ENCODE_TO] = [0.05, 0.95]

/**
 * Runs one ffmpeg command in the work directory and returns its log. Reports progress when the command prints it.
 * Throws processing_timeout, or an Error whose cause is the failed `RunOutcome`.
 */
export async function encode(work: TranscodeWork, args: string[]): Promise<string> {
  const { tools, info, threads, signal, onProgress } = work
  const outcome = await runConfined(tools.ffmpeg.path, args, {
    limits: runLimits(info, threads),
    limiters: tools.limiters,
    cwd: work.workDirectory,
    signal,
    onLine: (line) => {
      const seconds = encodedSeconds(line)
      if (seconds === undefined) return
      onProgress?.(ENCODE_FROM + (ENCODE_TO - ENCODE_FROM) * Math.min(1, seconds / info.durationSeconds))
    },
  })
  // It may meet a full disk and be content.
  if (outcome.state === 'done' && isDiskFull(outcome)) throw new Error('the disk is full', { cause: outcome })
  if (outcome.state === 'done') return outcome.stderr
  if (outcome.state === 'timed-out') throw apiError('processing_timeout', { cause: outcome.stderr })
  if (outcome.state === 'too-much-output') throw new Error('ffmpeg wrote too much')
  throw new Error(`ffmpeg ended with ${outcome.signal ?? outcome.exitCode}`, { cause: outcome })
}

/** A refusal and an abort are final; a crash or an output that is not as planned deserves the other way. */
export function mayRetry(work: TranscodeWork, error: unknown): error is Error {
  return error instanceof Error && !(error instanceof ApiError) && !work.signal?.aborted
}

/**
 * How a program ends that a file made crash, or write without end. It does so again on every machine: a clip that
 * crashed both ways is not worth the queue's other tries.
 */
const CRASHES = new Set<NodeJS.Signals>(['SIGSEGV', 'SIGABRT', 'SIGILL', 'SIGFPE', 'SIGBUS', 'SIGXFSZ'])

/** An output that is missing or is not what was planned: the file's doing, when ffmpeg is content the plain way too. */
export class UnusableOutput extends Error {
  override readonly name = 'UnusableOutput'
}

/**
 * What to throw when the last try failed: corrupt_media if ffmpeg refused the file, crashed over it or made nothing
 * usable of it, else the error.
 */
export function refuseAsCorrupt(error: unknown): unknown {
  if (isDiskFull(error)) return error
  if (error instanceof UnusableOutput) return apiError('corrupt_media', { cause: error })
  const run = error instanceof Error ? (error.cause as Partial<FailedRun> | undefined) : undefined
  if (run?.state !== 'failed') return error
  if (run.signal) return CRASHES.has(run.signal) ? apiError('corrupt_media', { cause: error }) : error
  return MACHINE_FAULT.test(run.stderr ?? '') ? error : apiError('corrupt_media', { cause: error })
}

/** `-progress` prints `out_time_ms` in microseconds too; the honest name came later and both builds have it. */
function encodedSeconds(line: string): number | undefined {
  const found = /^out_time_us=(\d+)/.exec(line)
  return found ? Number(found[1]) / 1e6 : undefined
}
