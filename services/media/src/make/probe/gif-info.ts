import { apiError } from '../../errors.ts'
import { DISPOSAL, readGifBlocks } from './gif-blocks.ts'
import { type ProbeLimits, refuseLargePicture, refuseManyFrames } from './limits.ts'

/** Measures of a GIF from its blocks: exact delays, no pixel decoded. */
export interface GifMeasures {
  width: number
  height: number
  delaysCentiseconds: number[]
  /** 0 means forever; null if absent, which plays once. */
  loopCount: number | null
  /** False when a frame exceeds the canvas: such a file is encoded again, not copied. */
  framesInsideCanvas: boolean
  /** False only when every pixel of every frame is certainly covered. */
  mayBeTransparent: boolean
}

/** Browsers, and ffmpeg's demuxer, show frames with a delay of 0 or 1 cs for 10 cs. */
const SHORTEST_DELAY_CENTISECONDS = 2
const DEFAULT_DELAY_CENTISECONDS = 10

function shownDelay(centiseconds: number): number {
  return centiseconds < SHORTEST_DELAY_CENTISECONDS ? DEFAULT_DELAY_CENTISECONDS : centiseconds
}

/**
 * Measures a GIF and refuses it at the block that crosses a limit, so that a bomb costs no more than the limit.
 * Throws corrupt_media, dimensions_exceeded, too_many_frames.
 */
export async function measureGif(path: string, limits: ProbeLimits): Promise<GifMeasures> {
  const frameLimits = { frames: limits.frames, pixelFrames: limits.gifPixelFrames }
  const gif: GifMeasures = {
    width: 0,
    height: 0,
    delaysCentiseconds: [],
    loopCount: null,
    framesInsideCanvas: true,
    mayBeTransparent: false,
  }
  let nextDelay = 0
  let hasTransparentColor = false
  let [isClear, disposal] = [true, 0]
  for await (const block of readGifBlocks(path)) {
    if (block.kind === 'screen') {
      if (block.width === 0 || block.height === 0) throw apiError('corrupt_media', { cause: 'gif: empty canvas' })
      refuseLargePicture(limits, block.width, block.height)
      gif.width = block.width
      gif.height = block.height
    }
    if (block.kind === 'loop') gif.loopCount ??= block.loopCount
    if (block.kind === 'graphic-control') {
      nextDelay = block.delayCentiseconds
      ;({ disposal, hasTransparentColor } = block)
    }
    if (block.kind === 'text') nextDelay = 0
    if (block.kind !== 'image') continue

    const [right, bottom] = [block.left + block.width, block.top + block.height]
    refuseLargePicture(limits, right, bottom)
    gif.framesInsideCanvas &&= right <= gif.width && bottom <= gif.height && block.width > 0 && block.height > 0
    const covers = !hasTransparentColor && block.left + block.top === 0 && right >= gif.width && bottom >= gif.height
    gif.mayBeTransparent ||= isClear && !covers
    isClear = disposal === DISPOSAL.toBackground || (disposal === DISPOSAL.toPrevious && isClear)
    gif.delaysCentiseconds.push(shownDelay(nextDelay))
    nextDelay = 0
    disposal = 0
    hasTransparentColor = false
    refuseManyFrames(frameLimits, gif.delaysCentiseconds.length, gif.width, gif.height)
  }
  const frames = gif.delaysCentiseconds.length
  if (frames === 0) throw apiError('corrupt_media', { cause: 'gif: no frame' })
  return gif
}
