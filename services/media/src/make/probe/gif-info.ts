import { apiError } from '../../errors.ts'
import { readGifBlocks } from '../gif/gif-blocks.ts'
import { DISPOSAL } from '../gif/gif-file.ts'
import { type ProbeLimits, refuseLargePicture, refuseManyFrames } from './source-limits.ts'

/** Browsers, and ffmpeg's demuxer, show frames with a delay of 0 or 1 cs for 10 cs. */
const SHORTEST_DELAY_CENTISECONDS = 2
const DEFAULT_DELAY_CENTISECONDS = 10

const shownDelay = (centiseconds: number): number =>
  centiseconds < SHORTEST_DELAY_CENTISECONDS ? DEFAULT_DELAY_CENTISECONDS : centiseconds

/** Properties of a frame without a graphic control. */
const NO_CONTROL = { delayCentiseconds: 0, disposal: 0, hasTransparentColor: false }

/**
 * Measures a GIF from its blocks alone, no pixel decoded. Refuses it at the block that crosses a limit, so that a bomb
 * costs no more than the limit. Throws corrupt_media, dimensions_exceeded, too_many_frames.
 */
export async function measureGif(path: string, limits: ProbeLimits) {
  const frameLimits = { frames: limits.frames, pixelFrames: limits.gifPixelFrames }
  const gif = {
    width: 0,
    height: 0,
    delaysCentiseconds: [] as number[],
    /** 0 is for ever; null if absent, which plays once. */
    loopCount: null as number | null,
    /** False when a frame exceeds the canvas: such a file is encoded again, not copied. */
    framesInsideCanvas: true,
    /** False only when every pixel of every frame is certainly covered. */
    mayBeTransparent: false,
  }
  let control = NO_CONTROL
  let isClear = true
  for await (const block of readGifBlocks(path)) {
    if (block.kind === 'screen') {
      if (block.width === 0 || block.height === 0) throw apiError('corrupt_media', { cause: 'gif: empty canvas' })
      refuseLargePicture(limits, block.width, block.height)
      gif.width = block.width
      gif.height = block.height
    }
    if (block.kind === 'loop') gif.loopCount ??= block.loopCount
    if (block.kind === 'graphic-control') control = block
    if (block.kind === 'text') control = { ...control, delayCentiseconds: 0 }
    if (block.kind !== 'image') continue

    const [right, bottom] = [block.left + block.width, block.top + block.height]
    refuseLargePicture(limits, right, bottom)
    gif.framesInsideCanvas &&= right <= gif.width && bottom <= gif.height && block.width > 0 && block.height > 0
    const { hasTransparentColor, disposal, delayCentiseconds } = control
    const covers = !hasTransparentColor && block.left + block.top === 0 && right >= gif.width && bottom >= gif.height
    gif.mayBeTransparent ||= isClear && !covers
    isClear = disposal === DISPOSAL.toBackground || (disposal === DISPOSAL.toPrevious && isClear)
    gif.delaysCentiseconds.push(shownDelay(delayCentiseconds))
    control = NO_CONTROL
    refuseManyFrames(frameLimits, gif.delaysCentiseconds.length, gif.width, gif.height)
  }
  if (gif.delaysCentiseconds.length === 0) throw apiError('corrupt_media', { cause: 'gif: no frame' })
  return gif
}
