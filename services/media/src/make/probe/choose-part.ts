import { LEAST_SECONDS, outOfRange } from '../../core/edits/edit.ts'

/** A shown frame; seconds from the first frame of the picture. */
export interface TimedFrame {
  at: number
  isKeyframe: boolean
}

export interface Part {
  /** Indexes of the frames, `end` exclusive. */
  from: number
  end: number
  startSeconds: number
  durationSeconds: number
}

/**
 * Chooses the frames of an edit: the first is the first that begins at `start` or at most half a frame before, the last one
 * begins at least half a frame before the end. `endSeconds` is where the picture ends. Throws edit_out_of_range.
 */
export function choosePart(
  frames: readonly TimedFrame[],
  { start = 0, duration = Number.POSITIVE_INFINITY }: { start?: number | undefined; duration?: number | undefined },
  endSeconds: number,
): Part {
  const whole = round(Math.min(duration, endSeconds - start))
  // One picture is held for as long as its sound: any time is a good start.
  if (frames.length === 1 && whole >= LEAST_SECONDS)
    return { from: 0, end: 1, startSeconds: start, durationSeconds: whole }
  const half = halfFrame(frames)
  const from = frames.findIndex(({ at }) => at >= start - half)
  if (from < 0 || start >= endSeconds) throw outOfRange('start', { duration: round(endSeconds) })
  const startSeconds = frames[from]?.at ?? 0
  const found = frames.findIndex(({ at }, index) => index > from && at >= startSeconds + duration - half)
  const durationSeconds = round(Math.min(duration, endSeconds - startSeconds))
  if (durationSeconds < LEAST_SECONDS) throw outOfRange('start', { least: LEAST_SECONDS })
  return { from, end: found < 0 ? frames.length : found, startSeconds, durationSeconds }
}

/** Halfway between the frame at `index` and the one before it; null where one is missing. */
export function between(frames: readonly TimedFrame[], index: number): number | null {
  const [before, after] = [frames[index - 1], frames[index]]
  return before && after ? round((before.at + after.at) / 2) : null
}

/** Decoding starts this long before the part: a decoder that joins in may need frames to recover. */
const LEAD_SECONDS = 1
/** An earlier part is decoded from the beginning, which costs little and never fails. */
const WORTH_A_SEEK_SECONDS = 2

/** The keyframe from which to decode a part that begins at `startSeconds`; undefined: from the beginning. */
export function findEntry(frames: readonly TimedFrame[], startSeconds: number): TimedFrame | undefined {
  const entry = frames.findLast(({ at, isKeyframe }) => isKeyframe && at <= startSeconds - LEAD_SECONDS)
  return entry && entry.at >= WORTH_A_SEEK_SECONDS ? entry : undefined
}

/** Time from which the probe must read packets for a part from `start`: 0, or a time whose keyframe the demuxer finds. */
export const firstSecondOf = (start: number): number =>
  start > WORTH_A_SEEK_SECONDS + LEAD_SECONDS ? start - LEAD_SECONDS : 0

function halfFrame(frames: readonly TimedFrame[]): number {
  const [first, last] = [frames[0], frames.at(-1)]
  return first && last && frames.length > 1 ? (last.at - first.at) / (frames.length - 1) / 2 : 0
}

const round = (value: number) => Math.round(value * 1e6) / 1e6
