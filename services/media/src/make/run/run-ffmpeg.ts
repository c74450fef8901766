// Runs of ffmpeg for one source: progress, limits, and the reason of a failure from its log.
import type { Writable } from 'node:stream'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { isDiskFull } from '../../ffmpeg/machine-faults.ts'
import { type RunLimits, runConfined } from '../../ffmpeg/run-confined.ts'

interface FfmpegRun {
  limits: RunLimits
  niceness: number
  /** Pipe to our GIF writer. */
  frames?: Writable
}

/**
 * Runs ffmpeg for files beside those that every clip has, which encode.ts makes. Throws an Error, whose cause is the
 * outcome of a failed run.
 */
export async function runFfmpeg(
  { tools, workDirectory: cwd, signal }: { tools: MediaTools; workDirectory: string; signal: AbortSignal },
  args: string[],
  { limits, niceness, frames }: FfmpegRun,
): Promise<void> {
  const { ffmpeg, limiters } = tools
  const to = frames && { outputTo: frames }
  const outcome = await runConfined(ffmpeg.path, args, { limits, limiters, cwd, signal, niceness, ...to })
  // ffmpeg may exit 0 on a full disk.
  if (outcome.state === 'done' && isDiskFull(outcome)) throw new Error('the disk is full', { cause: outcome })
  if (outcome.state !== 'done') throw new Error('ffmpeg did not make the file', { cause: outcome })
}
