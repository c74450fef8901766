// GIFs whose frames browsers and ffmpeg build differently. ffmpeg paints the background color of the header where
// browsers show nothing, and skews frames wider than the screen. It may give up a file that ends early.
import type { LaidFrame } from '../plan/unsure-pixels.ts'
import { type ColorTable, type GifBlock, readGifBlocks } from './gif-blocks.ts'
import { DISPOSAL, gifHeader, imageDescriptor, trailerBlock, unchangedFrame } from './gif-file.ts'
import { extend, isOutside, screenAround } from './gif-picture.ts'
import { type Piece, writePieces } from './gif-rewrite.ts'

type Image = Extract<GifBlock, { kind: 'image' }>
type Control = Extract<GifBlock, { kind: 'graphic-control' }>

/**
 * Writes the frames of a GIF so that ffmpeg draws what browsers show. A screen without colors has no background color,
 * so each frame gets a color table of its own. The screen is as large as the frames, and the last sub-block is ended. A
 * frame outside the picture becomes one that changes nothing: far away it would make the screen huge.
 */
export async function writeGifForFfmpeg(sourcePath: string, targetPath: string): Promise<void> {
  const pieces: Piece[] = []
  const picture = { width: 0, height: 0 }
  const screen = { width: 0, height: 0 }
  let colors: ColorTable = null
  let control: Control | undefined
  for await (const block of readGifBlocks(sourcePath)) {
    if (block.kind === 'screen') {
      colors = block.colors
      extend(picture, block)
    }
    if (block.kind === 'graphic-control') control = block
    if (block.kind === 'text') control = undefined
    if (block.kind !== 'image') continue
    if (pieces.length === 0) extend(picture, screenAround(block))
    const isShown = !isOutside(block, picture)
    extend(screen, picture, ...(isShown ? [screenAround(block)] : []))
    if (isShown) pieces.push(...(control ? [control] : []), ...imagePieces(block, colors))
    else pieces.push(unchangedFrame(control?.delayCentiseconds ?? 0))
    control = undefined
  }
  await writePieces(sourcePath, targetPath, [gifHeader(screen, null), ...pieces, trailerBlock])
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
  let [disposal, hasTransparentColor] = [0, false]
  for await (const block of readGifBlocks(path)) {
    if (block.kind === 'graphic-control') ({ disposal, hasTransparentColor } = block)
    if (block.kind !== 'image') continue
    const { left, top, width, height, data } = block
    const isOpaque = !hasTransparentColor && data.cutAt === null
    const after =
      disposal === DISPOSAL.toBackground ? 'cleared' : disposal === DISPOSAL.toPrevious ? 'restored' : 'kept'
    frames.push({ left, top, width, height, isOpaque, clears: false, after })
    ;[disposal, hasTransparentColor] = [0, false]
  }
  return frames
}
