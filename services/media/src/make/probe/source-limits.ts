// Limits of a source: 30 s of picture unless MEDIA_MAX_DURATION says otherwise (config/sources.ts), sides and pixels.
import { USUAL_LIMITS } from '../../config/sources.ts'
import type { Config } from '../../config.ts'
import type { MediaType } from '../../db/media-info.ts'
import { mimeOf, mimesInWords, USUAL_TYPES } from '../../db/source-types.ts'
import { apiError } from '../../errors.ts'

/**
 * Limits of a source (MEDIA_SOURCE_TYPES, MEDIA_MAX_DURATION, MEDIA_MAX_SIDE and fixed ones), all checked before any
 * picture is decoded.
 */
export interface ProbeLimits {
  /** Accepted types (MEDIA_SOURCE_TYPES). */
  types: readonly MediaType[]
  durationSeconds: number
  /** Longest source of which a part is chosen (MEDIA_MAX_SOURCE_DURATION). */
  sourceSeconds: number
  /** Longest side, as stored and as displayed. At most LARGEST_SIDE, the decoders' limit. */
  side: number
  frames: number
  /** Width x height x frames, the cost of decoding. */
  pixelFrames: number
  /** The same for a GIF, whose frames of any size are composed on the whole canvas. */
  gifPixelFrames: number
  /** Streams of picture and sound. */
  streams: number
  /** The same with subtitles, covers and attachments, which are dropped. ffprobe may run once for each. */
  allStreams: number
}

/**
 * Limits of contract/media.md 4.6 beside the settings. 3700 frames are 30 s at 120 fps and a little; 8e9 pixel-frames
 * are 30 s of 4K at 30 fps. A GIF of 1e9 is 30 s of 1080p at 16 fps, some 40 CPU seconds. Without the limit a few KB
 * could cost any amount.
 */
const FIXED_LIMITS = { frames: 3700, pixelFrames: 8e9, gifPixelFrames: 1e9, streams: 8, allStreams: 32 }

export const probeLimitsOf = (
  source: Pick<Config['source'], 'types' | 'maxSeconds' | 'maxSourceSeconds' | 'maxSide'>,
): ProbeLimits => ({
  ...FIXED_LIMITS,
  ...{ types: source.types, durationSeconds: source.maxSeconds },
  ...{ sourceSeconds: source.maxSourceSeconds, side: source.maxSide },
})

export const defaultProbeLimits = probeLimitsOf({ types: [...USUAL_TYPES], ...USUAL_LIMITS })

/** Names the types that are accepted here. */
export const unsupportedType = (types: readonly MediaType[], cause: string) =>
  apiError('unsupported_media_type', {
    message: `Only ${mimesInWords(types)} are accepted.`,
    details: { accepted: types.map(mimeOf) },
    cause,
  })

export const stillImage = (cause: unknown) =>
  apiError('unsupported_media_type', { message: 'The image is not animated.', cause })

/** A clip cut at 30 s often measures 30.03 s, because its last video or audio frame is longer. */
const DURATION_TOLERANCE_SECONDS = 0.05

/** Fields with which a caller chooses a part that is short enough. */
const PART_HINT = { hint: 'start,duration' }

/** `whole` is the reported duration: null if reading stopped before the end and no header has it. */
export function refuseLongDuration(
  limits: Pick<ProbeLimits, 'durationSeconds'>,
  seconds: number,
  whole: number | null = seconds,
): void {
  refuseLonger(limits.durationSeconds, seconds, { whole, ...PART_HINT })
}

/** Refuses a source that is too long even for a part of it, so without a hint. */
export function refuseLongSource({ sourceSeconds }: Pick<ProbeLimits, 'sourceSeconds'>, seconds: number): void {
  refuseLonger(sourceSeconds, seconds, { whole: seconds })
}

function refuseLonger(limit: number, seconds: number, { whole, ...hint }: { whole: number | null; hint?: string }) {
  if (seconds <= limit + DURATION_TOLERANCE_SECONDS) return
  const actual = whole === null ? {} : { actual: Math.round(whole * 1000) / 1000 }
  throw apiError('duration_exceeded', { details: { limit, ...actual, ...hint } })
}

/** Tolerance of declared durations, rounded and of longer sound; the probe decides (contract/media.md 3.5, 3.6). */
export const DECLARED_TOLERANCE_SECONDS = 0.5

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

/** Checks the number of frames and their pixels. Counting stops at the limit, so there is no `actual`. */
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
