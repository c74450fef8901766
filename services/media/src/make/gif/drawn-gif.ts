// GIFs whose frames browsers and ffmpeg build differently. ffmpeg paints the background color of the header where
// browsers show nothing, and skews frames wider than the screen. It may give up a file that ends early, and builds of
// 2018 paint the first color where pixels are missing.
import type { Size } from '../../core/clips/geometry.ts'
import type { LaidFrame } from '../plan/unsure-pixels.ts'
import { type ColorTable, type GifBlock, readGifBlocks } from './gif-blocks.ts'
import {
  clearingFrame,
  DISPOSAL,
  EXTENSION,
  type GifImage,
  GRAPHIC_CONTROL,
  gifFrame,
  gifHeader,
  imageDescriptor,
  trailerBlock,
  unchangedFrame,
} from './gif-file.ts'
import { extend, isOutside, SHORTEST_DELAY_CENTISECONDS, screenAround, shownDelay } from './gif-picture.ts'
import { type Piece, writePieces } from './gif-rewrite.ts'
import { readInterlacedPart } from './interlaced-part.ts'
import { countWholeRows } from './whole-rows.ts'

type Image = Extract<GifBlock, { kind: 'image' }>
type Control = Extract<GifBlock, { kind: 'graphic-control' }>

interface Frame {
  control: Control | undefined
  image: Image
  /** True if none of its pixels shows. */
  isUnseen?: boolean
  /** Written in place of the image. */
  part?: GifImage
  ending?: Ending
}

/** End of a frame after which the picture is empty, whatever its control says. */
interface Ending {
  disposal: number
  /** Centiseconds; without any the frame is left out. */
  delay: number
  /** Centiseconds of a frame behind it that clears the picture; 0 if it does so itself. */
  clearingDelay: number
}

interface Gif {
  /** Shared by all images without a table of their own. */
  colors: ColorTable
  picture: Size
  frames: Frame[]
}

/**
 * Writes the frames of a GIF so that ffmpeg draws what browsers show. A screen without colors has no background color,
 * so each frame gets a color table of its own. The screen is as large as the frames, and the last sub-block is ended. A
 * frame outside the picture becomes one that changes nothing: far away it would make the screen huge.
 */
export async function writeGifForFfmpeg(sourcePath: string, targetPath: string, signal?: AbortSignal): Promise<void> {
  const { colors, picture, frames } = await endWithWholeRows(sourcePath, await readFrames(sourcePath), signal)
  const screen = { ...picture }
  const pieces = frames.flatMap((frame): Piece[] => {
    const { control, image, isUnseen, part, ending } = frame
    const clearing = ending?.clearingDelay ? [clearingFrame(picture, ending.clearingDelay)] : []
    if (ending?.delay === 0) return clearing
    const delay = ending?.delay ?? control?.delayCentiseconds ?? 0
    if (isUnseen || isOutside(image, picture)) return [unchangedFrame(delay), ...clearing]
    extend(screen, screenAround(image))
    if (part) return [gifFrame(part, control?.disposal ?? DISPOSAL.none, delay)]
    return [...controlPieces(frame), ...imagePieces(image, colors), ...clearing]
  })
  await writePieces(sourcePath, targetPath, [gifHeader(screen, null), ...pieces, trailerBlock])
}

async function readFrames(path: string): Promise<Gif> {
  const gif: Gif = { colors: null, picture: { width: 0, height: 0 }, frames: [] }
  let control: Control | undefined
  for await (const block of readGifBlocks(path)) {
    if (block.kind === 'screen') {
      gif.colors = block.colors
      extend(gif.picture, block)
    }
    if (block.kind === 'graphic-control') control = block
    if (block.kind === 'text') control = undefined
    if (block.kind !== 'image') continue
    if (gif.frames.length === 0) extend(gif.picture, screenAround(block))
    gif.frames.push({ control, image: block })
    control = undefined
  }
  return gif
}

/**
 * Leaves of an image that ends early the rows that are there. Chromium shows nothing in the others where such an image
 * is the whole picture without a transparent color; elsewhere what was there stays. A first frame without a row stays
 * as it is.
 */
async function endWithWholeRows(path: string, gif: Gif, signal?: AbortSignal): Promise<Gif> {
  const { picture, frames } = gif
  const [before, last] = [frames.at(-2), frames.at(-1)]
  if (!last || last.image.data.cutAt === null) return gif
  const { image, control } = last
  // A frame outside the picture may be larger than any limit.
  const { rows, ...shown } = isOutside(image, picture) ? NO_ROW : await readRows(path, gif, last, signal)
  if (!before) return rows === 0 ? gif : { ...gif, frames: [{ ...last, ...shown }] }
  const end = { ...last, ...shown, isUnseen: rows === 0 }
  const isRestEmpty = rows < image.height && covers(image, picture) && !hasTransparentColor(control)
  const previous = isRestEmpty ? { ...before, ending: endingOf(before, picture) } : before
  return { ...gif, frames: [...frames.slice(0, -2), previous, end] }
}

const NO_ROW = { rows: 0 }

type Rows = { rows: number } & Partial<Pick<Frame, 'image' | 'part'>>

async function readRows(path: string, gif: Gif, { image, control }: Frame, signal?: AbortSignal): Promise<Rows> {
  const { isInterlaced, start, colors } = image.data
  if (!isInterlaced) {
    const rows = await countWholeRows(path, { ...image, start }, signal)
    return { rows, image: { ...image, height: rows } }
  }
  const table = colors ?? gif.colors
  if (!table) return NO_ROW
  const kind = { table, transparentColor: control?.transparentColor ?? null, isFirst: gif.frames.length === 1 }
  const found = await readInterlacedPart(path, { ...image, start }, kind, signal)
  if (!found) return NO_ROW
  return found.rows < image.height ? { rows: found.rows, part: found.image } : { rows: found.rows }
}

const hasTransparentColor = (control: Control | undefined) => (control?.transparentColor ?? null) !== null

/** A frame clears its own place; behind one that is smaller than the picture another clears all. */
function endingOf({ control, image }: Frame, picture: Size): Ending {
  const delay = shownDelay(control?.delayCentiseconds ?? 0)
  if (covers(image, picture)) return { disposal: DISPOSAL.toBackground, delay, clearingDelay: 0 }
  const isDivisible = delay >= 2 * SHORTEST_DELAY_CENTISECONDS
  const clearingDelay = isDivisible ? SHORTEST_DELAY_CENTISECONDS : delay
  return { disposal: DISPOSAL.none, delay: delay - clearingDelay, clearingDelay }
}

const covers = ({ left, top, width, height }: Image, picture: Size): boolean =>
  left === 0 && top === 0 && width >= picture.width && height >= picture.height

function controlPieces({ control, ending }: Frame): Piece[] {
  if (!ending) return control ? [control] : []
  const head = Buffer.of(EXTENSION, GRAPHIC_CONTROL, 4, (ending.disposal << 2) | (hasTransparentColor(control) ? 1 : 0))
  const delay = Buffer.alloc(2)
  delay.writeUInt16LE(ending.delay)
  // The transparent color and the end follow.
  return [head, delay, control ? { start: control.start + 6, end: control.end } : Buffer.alloc(2)]
}

function imagePieces({ data, end, ...place }: Image, shared: ColorTable): Piece[] {
  const { isInterlaced, start, cutAt } = data
  const colors = data.colors ?? shared
  const head = [imageDescriptor(place, { tableBits: colors?.bits, isInterlaced }), ...(colors ? [colors] : [])]
  if (cutAt === null) return [...head, { start, end }]
  const left = end - cutAt - 1
  const last = left > 0 ? [Buffer.of(left), { start: cutAt + 1, end }] : []
  return [...head, { start, end: cutAt }, ...last, Buffer.of(0)]
}

/** Places of the frames, and what becomes of them. */
export async function readLaidFrames(path: string): Promise<LaidFrame[]> {
  const frames: LaidFrame[] = []
  let [disposal, transparentColor]: [number, number | null] = [0, null]
  for await (const block of readGifBlocks(path)) {
    if (block.kind === 'graphic-control') ({ disposal, transparentColor } = block)
    if (block.kind !== 'image') continue
    const { left, top, width, height, data } = block
    const isOpaque = transparentColor === null && data.cutAt === null
    const after =
      disposal === DISPOSAL.toBackground ? 'cleared' : disposal === DISPOSAL.toPrevious ? 'restored' : 'kept'
    frames.push({ left, top, width, height, isOpaque, clears: false, after })
    ;[disposal, transparentColor] = [0, null]
  }
  return frames
}
