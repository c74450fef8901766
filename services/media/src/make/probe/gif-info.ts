import { apiError } from '../../errors.ts'
import { readGifBlocks } from '../gif/gif-blocks.ts'
import { DISPOSAL } from '../gif/gif-file.ts'
import { extend, isOutside, screenAround, shownDelay } from '../gif/gif-picture.ts'
import { type ProbeLimits, refuseLargePicture, refuseManyFrames } from './source-limits.ts'

/** Properties of a frame without a graphic control. */
const NO_CONTROL = { delayCentiseconds: 0, disposal: 0, transparentColor: null as number | null }

/**
 * Measures a GIF from its blocks alone, no pixel decoded. Refuses it at the block that crosses a limit, so that a bomb
 * costs no more than the limit. The picture is that of browsers: the screen, or more where the first frame exceeds it;
 * other frames are cut there. Throws corrupt_media, dimensions_exceeded, too_many_frames.
 */
export async function measureGif(path: string, limits: ProbeLimits) {
  const frameLimits = { frames: limits.frames, pixelFrames: limits.gifPixelFrames }
  const picture = { width: 0, height: 0 }
  /** Around all frames that are drawn. */
  const decoded = { width: 0, height: 0 }
  const delaysCentiseconds: number[] = []
  const gif = {
    /** 0 is for ever; null if absent, which plays once. The last of several counts, as in browsers. */
    loopCount: null as number | null,
    /** False when a frame exceeds the screen: such a file is encoded again, not copied. */
    framesInsideCanvas: true,
    /** False only when every pixel of every frame is certainly covered. */
    mayBeTransparent: false,
    /** True if the end of the file cannot be read. */
    repaired: false,
  }
  let control = NO_CONTROL
  let isClear = true
  for await (const block of readGifBlocks(path)) {
    if (block.kind === 'screen') extend(picture, block)
    if (block.kind === 'loop') gif.loopCount = block.loopCount
    if (block.kind === 'lost') gif.repaired = true
    if (block.kind === 'graphic-control') control = block
    if (block.kind === 'text') control = { ...control, delayCentiseconds: 0 }
    if (block.kind !== 'image') continue

    const { width: right, height: bottom } = screenAround(block)
    const isInside = right <= picture.width && bottom <= picture.height && block.width > 0 && block.height > 0
    gif.framesInsideCanvas &&= isInside
    if (delaysCentiseconds.length === 0) extend(picture, screenAround(block))
    extend(decoded, picture, ...(isOutside(block, picture) ? [] : [screenAround(block)]))
    refuseLargePicture(limits, decoded.width, decoded.height)
    const { transparentColor, disposal, delayCentiseconds } = control
    const covers =
      transparentColor === null && block.left + block.top === 0 && right >= picture.width && bottom >= picture.height
    gif.mayBeTransparent ||= isClear && !(covers && block.data.cutAt === null)
    isClear = disposal === DISPOSAL.toBackground || (disposal === DISPOSAL.toPrevious && isClear)
    delaysCentiseconds.push(shownDelay(delayCentiseconds))
    control = NO_CONTROL
    refuseManyFrames(frameLimits, delaysCentiseconds.length, decoded.width, decoded.height)
  }
  if (delaysCentiseconds.length === 0) throw apiError('corrupt_media', { cause: 'gif: no frame' })
  if (picture.width === 0 || picture.height === 0) throw apiError('corrupt_media', { cause: 'gif: empty canvas' })
  return { ...picture, ...gif, decoded, delaysCentiseconds }
}
