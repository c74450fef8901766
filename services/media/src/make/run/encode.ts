import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import type { MediaInfo } from '../../db/media-info.ts'
import type { FIRST_KINDS } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { isDiskFull } from '../../ffmpeg/machine-faults.ts'
import { runConfined } from '../../ffmpeg/run-confined.ts'
import { workFiles } from '../command/work-files.ts'
import { runLimits } from '../plan/run-limits.ts'
import { FfmpegLog } from './ffmpeg-log.ts'
import type { Rendition } from './verify-renditions.ts'

/** The files of a clip that is worth showing. */
export interface FirstFiles extends Record<(typeof FIRST_KINDS)[number], Rendition> {
  placeholder: Buffer
  hasAudio: boolean
}

export interface TranscodeOptions {
  /** An empty directory for this clip and its renditions, which the caller removes. */
  workDirectory: string
  /** 1 under load, all cores on an idle machine (contract/media.md 5.7). */
  threads: number
  /** `own` writes half the bytes (gif/gif-writer.ts); `ffmpeg` takes less CPU. */
  gifEncoder: 'own' | 'ffmpeg'
  /** `auto` keeps the source's streams as mp4 or webm where they fit (copy-plan.ts). */
  copy: 'auto' | 'never'
  signal?: AbortSignal | undefined
  /** Receives poster and mp4 of a copied source first; the other files are begun when it resolves. It never rejects. */
  onFirstFiles?: ((files: FirstFiles) => Promise<void>) | undefined
  /** Receives a rising fraction of 0 to 1. */
  onProgress?: ((fraction: number) => void) | undefined
}

export interface TranscodeWork extends TranscodeOptions {
  tools: MediaTools
  info: MediaInfo
}

/** Progress of the whole when encoding starts and ends; the rest is overview and verification. */
export const ENCODING = { from: 0.05, to: 0.95 }

/** Pipe to our GIF writer, which a run waits for. */
export interface FramesPipe {
  pipe: Writable
  /** Predicted CPU seconds of the writer. */
  writerSeconds: number
}

interface EncodeRun {
  progress?: typeof ENCODING
  frames?: FramesPipe
}

/**
 * Runs ffmpeg and returns what its log shows. `progress` is its part of the whole, and `frames` receives the frames.
 * Throws processing_timeout, or an Error whose cause is the failed `RunOutcome`.
 */
export async function encode(
  work: TranscodeWork,
  args: string[],
  { progress = ENCODING, frames }: EncodeRun = {},
): Promise<FfmpegLog> {
  const log = new FfmpegLog()
  const { tools, info, threads, signal, onProgress } = work
  const outcome = await runConfined(tools.ffmpeg.path, args, {
    limits: runLimits(info, threads, frames?.writerSeconds),
    limiters: tools.limiters,
    cwd: work.workDirectory,
    signal,
    onLogLine: log.add,
    ...(frames && { outputTo: frames.pipe }),
    onLine: (line) => {
      const count = /^frame=\s*(\d+)/.exec(line)?.[1]
      if (count) log.writtenFrames = Number(count)
      // `-progress` prints `out_time_ms` in microseconds too; both builds have the correctly named field.
      const microseconds = /^out_time_us=(\d+)/.exec(line)?.[1]
      if (!microseconds) return
      const part = Math.min(1, Number(microseconds) / 1e6 / info.durationSeconds)
      onProgress?.(progress.from + (progress.to - progress.from) * part)
    },
  })
  const { state } = outcome
  if (state === 'timed-out') throw apiError('processing_timeout', { cause: log.reasons })
  if (state === 'too-much-output') throw new Error('ffmpeg wrote too much')
  const cause = { ...outcome, stderr: log.reasons }
  if (outcome.state === 'failed') throw new Error(`ffmpeg ended with ${outcome.signal ?? outcome.exitCode}`, { cause })
  // ffmpeg may exit 0 on a full disk.
  if (isDiskFull(cause)) throw new Error('the disk is full', { cause })
  return log
}

/** Waits for all even when one fails, because none may still run during the next attempt. Throws the first failure. */
export async function allToTheirEnd<T extends unknown[]>(...work: { [K in keyof T]: Promise<T[K]> }): Promise<T> {
  await Promise.allSettled(work)
  return Promise.all(work) as Promise<T>
}

export const inWork = ({ workDirectory }: TranscodeWork, file: keyof typeof workFiles): string =>
  resolve(workDirectory, workFiles[file])
