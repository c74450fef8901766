import { open } from 'node:fs/promises'
import type { AnimationInfo } from '../../db/media-info.ts'
import { apiError } from '../../errors.ts'
import { BrokenAnimation, isEarlyEnd, isFrame, StillImage } from '../animation/animation.ts'
import { readApng } from '../animation/read-apng.ts'
import { readWebp } from '../animation/read-webp.ts'
import { type ProbeLimits, refuseLargePicture, refuseManyFrames, stillImage } from './source-limits.ts'

const READERS = { apng: readApng, webp: readWebp }

/**
 * Measures an animation from its chunks alone, no pixel decoded. Refuses it at the chunk that crosses a limit. Throws
 * corrupt_media, dimensions_exceeded, too_many_frames, and unsupported_media_type for one picture.
 */
export async function measureAnimation(path: string, type: Exclude<AnimationInfo['type'], 'gif'>, limits: ProbeLimits) {
  const frameLimits = { frames: limits.frames, pixelFrames: limits.gifPixelFrames }
  const found = {
    ...{ width: 0, height: 0, loopCount: null as number | null, mayBeTransparent: false, repaired: false },
    delaysCentiseconds: [] as number[],
  }
  await using file = await open(path)
  try {
    for await (const part of READERS[type](file)) {
      if (isEarlyEnd(part)) {
        found.repaired = true
        continue
      }
      if (isFrame(part)) {
        const { delay, dispose } = part
        found.delaysCentiseconds.push((100 * delay.numerator) / delay.denominator)
        // A cleared place may show until the end, as the canvas around a small first frame.
        found.mayBeTransparent ||= dispose > 0 || part.width < found.width || part.height < found.height
        refuseManyFrames(frameLimits, found.delaysCentiseconds.length, found.width, found.height)
        continue
      }
      const { width, height, plays, mayBeTransparent } = part
      refuseLargePicture(limits, width, height)
      // A GIF counts repetitions, up to 65,535.
      const loopCount = plays === 1 ? null : plays > 0x10000 ? 0 : Math.max(0, plays - 1)
      Object.assign(found, { width, height, loopCount, mayBeTransparent })
    }
  } catch (error) {
    if (error instanceof BrokenAnimation) throw apiError('corrupt_media', { cause: error })
    if (!(error instanceof StillImage)) throw error
    throw stillImage(error)
  }
  if (found.delaysCentiseconds.length === 0) throw apiError('corrupt_media', { cause: 'no frame' })
  return found
}

/** Longest step, as of a GIF: players seek badly in few frames a second. Shortest: 60 frames a second. */
const [LONGEST_STEP, SHORTEST_STEP] = [10, 100 / 60]

/**
 * Greatest common divisor of all delays, in centiseconds: whole milliseconds, or a part of the one delay of all frames.
 * Otherwise 2 cs, 1 cs off at most.
 */
export function stepOf(delays: readonly number[]): number {
  const [first = 0] = delays
  const isEven = delays.every((delay) => Math.abs(delay - first) < 1e-6)
  if (isEven && first >= SHORTEST_STEP - 1e-6) return first / Math.ceil(first / LONGEST_STEP - 1e-6)
  for (let step = LONGEST_STEP * 10; step >= SHORTEST_STEP * 10; step--) {
    if (delays.every((delay) => Math.abs(delay * 10 - step * Math.round((delay * 10) / step)) < 1e-6)) return step / 10
  }
  return 2
}
