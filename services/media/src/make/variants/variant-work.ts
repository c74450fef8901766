import type { Writable } from 'node:stream'
import type { MediaInfo } from '../../db/media-info.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { isDiskFull } from '../../ffmpeg/machine-faults.ts'
import { type RunLimits, runConfined } from '../../ffmpeg/run-confined.ts'
import type { Rendition } from '../transcode/verify-renditions.ts'

export interface VariantWork {
  tools: MediaTools
  /** Holds the clip's files that the variant is made of, under their names in `workFiles`. */
  workDirectory: string
  info: MediaInfo
  signal: AbortSignal
}

/** A file, or the fewest bytes that were reached if none is small enough. */
export type VariantMade = { file: Rendition } | { smallest: number }

/** Runs ffmpeg to its end. Throws an Error, whose cause is the outcome of a failed run. */
export async function runFfmpeg(
  { tools, workDirectory: cwd, signal }: VariantWork,
  args: string[],
  { limits, niceness, frames }: { limits: RunLimits; niceness: number; frames?: Writable },
): Promise<void> {
  const { ffmpeg, limiters } = tools
  const to = frames && { outputTo: frames }
  const outcome = await runConfined(ffmpeg.path, args, { limits, limiters, cwd, signal, niceness, ...to })
  // ffmpeg may exit 0 on a full disk.
  if (outcome.state === 'done' && isDiskFull(outcome)) throw new Error('the disk is full', { cause: outcome })
  if (outcome.state !== 'done') throw new Error('ffmpeg made no variant', { cause: outcome })
}
