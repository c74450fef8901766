import { type Edit, LEAST_SECONDS, outOfRange, startInFile } from '../../core/edits/edit.ts'
import { toMicroseconds } from './ffprobe-values.ts'
import { gapsOf } from './picture-times.ts'

/** A shown frame; seconds from the first frame of the picture. */
export interface TimedFrame {
  at: number
  isKeyframe: boolean
}

export interface Part {
  /** Indexes of the frames, `end` exclusive. */
  from: number
  end: number
  /** Start of the part, later than that of its first frame if that one is held, and so is cut. */
  startSeconds: number
  durationSeconds: number
}

/** A picture that is shown for more than so many usual frames is held. */
const HELD_FRAMES = 1.5
/** Frames of slides are not usual ones: each is held. */
const LONGEST_USUAL_SECONDS = 0.5

/**
 * Chooses the frames of an edit. The first begins at `start` or at most half a frame before, the last at least half a
 * frame before the end. A picture that is held at `start` is shown from there. `endSeconds` is where the picture ends.
 * Throws edit_out_of_range, also for a part of one frame that is not held: its files would not agree on its length.
 */
export function choosePart(frames: readonly TimedFrame[], edit: Edit, endSeconds: number): Part {
  const start = startInFile(edit)
  const { duration = Number.POSITIVE_INFINITY, missingSeconds = 0, speed = 1 } = edit
  if (start >= endSeconds) throw outOfRange('start', { duration: toMicroseconds(endSeconds + missingSeconds) })
  const usual = usualFrame(frames)
  const { from, startSeconds, isHeld } = chooseStart(frames, start, { endSeconds, usual })
  const durationSeconds = toMicroseconds(Math.min(duration, endSeconds - startSeconds))
  const isWhole = startSeconds === 0 && durationSeconds === toMicroseconds(endSeconds)
  const isTooShort = durationSeconds / Math.max(1, speed) < LEAST_SECONDS
  if (isTooShort && !isWhole) throw outOfRange('start', { least: LEAST_SECONDS })
  if (isTooShort && speed > 1) throw outOfRange('speed', { least: LEAST_SECONDS })
  const after = frames.findIndex(({ at }, index) => index > from && at >= startSeconds + duration - usual / 2)
  const end = after < 0 ? frames.length : after
  const isStill = end - from === 1 && !isHeld && !isWhole
  if (isStill)
    throw outOfRange(edit.duration === undefined ? 'start' : 'duration', { least: 2 * toMilliseconds(usual) })
  return { from, end, startSeconds, durationSeconds }
}

function chooseStart(
  frames: readonly TimedFrame[],
  start: number,
  { endSeconds, usual }: { endSeconds: number; usual: number },
): Pick<Part, 'from' | 'startSeconds'> & { isHeld: boolean } {
  const timeOf = (index: number) => frames[index]?.at ?? endSeconds
  const shown = Math.max(
    0,
    frames.findLastIndex(({ at }) => at <= start),
  )
  const length = timeOf(shown + 1) - timeOf(shown)
  const isLate = start - timeOf(shown) > length / 2
  const isHeld = length > HELD_FRAMES * usual || (isLate && shown === frames.length - 1)
  if (isHeld) return { from: shown, startSeconds: Math.max(start, timeOf(shown)), isHeld }
  const from = isLate ? shown + 1 : shown
  return { from, startSeconds: timeOf(from), isHeld }
}

const toMilliseconds = (seconds: number): number => Math.ceil(1000 * seconds) / 1000

/** Halfway between the frame at `index` and the one before it; null where one is missing. */
export function between(frames: readonly TimedFrame[], index: number): number | null {
  const [before, after] = [frames[index - 1], frames[index]]
  return before && after ? toMicroseconds((before.at + after.at) / 2) : null
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

/**
 * Time from which the probe must read packets for a part from `start`: 0, or a time whose keyframe the demuxer finds.
 */
export const firstSecondOf = (start: number): number =>
  start > WORTH_A_SEEK_SECONDS + LEAD_SECONDS ? start - LEAD_SECONDS : 0

/** Returns the time from one frame to the next of most frames: pauses do not change it. */
function usualFrame(frames: readonly TimedFrame[]): number {
  const gaps = gapsOf(frames.map(({ at }) => at))
  const median = gaps.sort((a, b) => a - b)[gaps.length >> 1] ?? 0
  return Math.min(LONGEST_USUAL_SECONDS, median)
}
