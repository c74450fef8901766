// Time, memory and bytes that one run of ffmpeg may take. A job's predicted time is its cost in the queue, too
// (job-weight.ts).
import type { Size } from '../../core/clips/geometry.ts'
import { decodedSize } from '../../core/edits/decoded-size.ts'
import { isAnimation, type MediaInfo } from '../../db/media-info.ts'
import { memoryBound } from '../../ffmpeg/memory-bound.ts'
import type { RunLimits } from '../../ffmpeg/run-confined.ts'
import { FAST_FPS } from './rendition-plan.ts'

/**
 * CPU seconds per pixel for all renditions together, measured on one core of the reference machine
 * (contract/media.md 5.9).
 */
const CPU_SECONDS_PER_PIXEL = 2.9e-8

/** The worst legal clip, 30 s of noise in 1080p, makes a webm of 220 MB. */
export const LARGEST_FILE_BYTES = 512 * 1024 ** 2

/** Address space beyond the used memory: libraries, and a heap and a stack that every thread reserves. */
const ADDRESS_SPACE = { bytes: 1024 ** 3, bytesPerThread: 256 * 1024 ** 2 }

/** Frames that a run without `-ss` decodes and drops. */
function skippedFrames(info: MediaInfo): number {
  if (!info.edited) return 0
  // A part in a pause has few frames, those before it may be many.
  const fps = isAnimation(info) ? info.fps : Math.max(info.fps, Math.min(info.baseFps, FAST_FPS))
  return (info.edited.cut.startSeconds * fps) / (info.edited.edit.speed ?? 1)
}

/** CPU seconds of all renditions of so many pictures. */
export const secondsOf = ({ width, height }: Size, frames: number): number =>
  CPU_SECONDS_PER_PIXEL * width * height * frames

/** Predicts the CPU seconds of all renditions of a clip. */
export function predictedSeconds(info: MediaInfo): number {
  const frames = Math.max(info.frames + skippedFrames(info), info.durationSeconds * 10)
  return secondsOf(decodedSize(info), frames)
}

/**
 * Limits of one run: ten times the prediction plus the time to start, which only a file made to be slow reaches.
 * `writerSeconds`: prediction for our GIF writer, which the run waits for without using its CPU (write-gif.ts).
 */
export function runLimits(info: MediaInfo, threads: number, writerSeconds = 0): RunLimits {
  const predicted = predictedSeconds(info)
  const secondsFor = (work: number) => Math.min(240, 15 + 10 * work)
  return {
    wallSeconds: secondsFor(predicted + writerSeconds),
    cpuSeconds: 2 * secondsFor(predicted) * threads,
    memoryBytes: memoryBound(decodedSize(info)) + ADDRESS_SPACE.bytes + threads * ADDRESS_SPACE.bytesPerThread,
    fileBytes: LARGEST_FILE_BYTES,
  }
}
