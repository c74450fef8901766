import { apiError } from '../../errors.ts'

/** What a source may be. Everything here is refused before any picture is decoded. */
export interface ProbeLimits {
  durationSeconds: number
  /** Longest side, as stored and as displayed. Not over LARGEST_SIDE, where decoders stop. */
  side: number
  frames: number
  /** Width x height x frames: what decoding costs. */
  pixelFrames: number
  /** The same of a GIF, whose frames are composed on the whole canvas: a frame of one pixel costs as much as a full one. */
  gifPixelFrames: number
  streams: number
}

/**
 * contract/media.md 4.6; the first two are settings. 3700 frames are 30 s at 120 fps and a little; 8e9 pixel-frames are 30 s of
 * 4K at 30 fps. A GIF of 1e9 is 30 s of 1080p at 16 fps, some 40 CPU seconds; a few KB could ask for any number more.
 */
export const defaultProbeLimits: ProbeLimits = {
  durationSeconds: 30,
  side: 4096,
  frames: 3700,
  pixelFrames: 8e9,
  gifPixelFrames: 1e9,
  streams: 8,
}

/** A clip cut at 30 s often measures 30.03 s, because its last frame or audio frame runs over. */
const DURATION_TOLERANCE_SECONDS = 0.05

/** `whole` is the length to report: null where reading stopped before the end and no header tells it. */
export function refuseLongDuration(
  limits: Pick<ProbeLimits, 'durationSeconds'>,
  seconds: number,
  whole: number | null = seconds,
): void {
  if (seconds <= limits.durationSeconds + DURATION_TOLERANCE_SECONDS) return
  const actual = whole === null ? {} : { actual: Math.round(whole * 1000) / 1000 }
  throw apiError('duration_exceeded', { details: { limit: limits.durationSeconds, ...actual } })
}

/**
 * Containers, manifests and sites tell the length of the sound too, which may go on behind the picture, and tell it rounded:
 * what is over by no more than this is for the probe to measure (contract/media.md 3.5, 3.6).
 */
export const DECLARED_TOLERANCE_SECONDS = 0.5

/** By what is told before there is anything to measure. */
export function refuseDeclaredDuration(
  limits: Pick<ProbeLimits, 'durationSeconds'>,
  seconds: number,
  tolerance = DECLARED_TOLERANCE_SECONDS,
): void {
  if (seconds > limits.durationSeconds + tolerance) refuseLongDuration(limits, seconds)
}

export function refuseLargePicture(limits: ProbeLimits, width: number, height: number): void {
  if (Math.max(width, height) <= limits.side) return
  throw apiError('dimensions_exceeded', { details: { limit: { side: limits.side }, actual: { width, height } } })
}

/** Two limits in one: frames as such, and the pixels of all of them. Counting stops at the limit, so no `actual`. */
export function refuseManyFrames(
  limits: Pick<ProbeLimits, 'frames' | 'pixelFrames'>,
  frames: number,
  width: number,
  height: number,
): void {
  const allowed = Math.min(limits.frames, Math.floor(limits.pixelFrames / Math.max(1, width * height)))
  if (frames <= allowed) return
  throw apiError('too_many_frames', { details: { limit: allowed } })
}
