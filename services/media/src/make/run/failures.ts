import { ApiError } from '@services/common/errors'
import { apiError } from '../../errors.ts'
import { isDiskFull, MACHINE_FAULT } from '../../ffmpeg/machine-faults.ts'
import type { RunOutcome } from '../../ffmpeg/run-confined.ts'

/**
 * A refusal and an abort are final, and on a full disk another way fails, too. After a crash or an unusable output the
 * simple way is tried.
 */
export function mayRetry({ signal }: { signal?: AbortSignal | undefined }, error: unknown): error is Error {
  return error instanceof Error && !(error instanceof ApiError) && !isDiskFull(error) && !signal?.aborted
}

/**
 * Signals of a program that a file made crash, or write endlessly. The file does so on every machine, so after crashes
 * in both ways the queue's other attempts are spared.
 */
const CRASHES = new Set<NodeJS.Signals>(['SIGSEGV', 'SIGABRT', 'SIGILL', 'SIGFPE', 'SIGBUS', 'SIGXFSZ'])

/** An output that is missing or not as planned: the file's fault if the simple way gives one too. */
export class UnusableOutput extends Error {
  override readonly name = 'UnusableOutput'
}

/** A copy whose picture does not stay as copy-plan.ts knows it. */
export class ChangingPicture extends UnusableOutput {}

/** The last error: corrupt_media if ffmpeg refused the file, crashed over it or made no usable output, else itself. */
export function refuseAsCorrupt(error: unknown): unknown {
  if (isDiskFull(error)) return error
  if (error instanceof UnusableOutput) return apiError('corrupt_media', { cause: error })
  const run = error instanceof Error ? (error.cause as RunOutcome | undefined) : undefined
  if (run?.state !== 'failed') return error
  if (run.signal) return CRASHES.has(run.signal) ? apiError('corrupt_media', { cause: error }) : error
  return MACHINE_FAULT.test(run.stderr) ? error : apiError('corrupt_media', { cause: error })
}
