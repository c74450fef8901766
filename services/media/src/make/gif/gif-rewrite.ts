import { type FileHandle, open } from 'node:fs/promises'
import { type GifBlock, readGifBlocks } from './gif-blocks.ts'
import { DISPOSAL, loopBlock, trailerBlock } from './gif-file.ts'

export type Piece = Buffer | { start: number; end: number }

const COPY_BYTES = 1024 * 1024

/**
 * Copies a GIF without comments, text, application data (XMP, scripts, appended payloads) and anything after the
 * trailer; the rest stays byte for byte. Throws corrupt_media like `readGifBlocks`.
 */
export async function rewriteGif(sourcePath: string, targetPath: string): Promise<void> {
  await writePieces(sourcePath, targetPath, await piecesToKeep(sourcePath))
}

/** Writes bytes of our own and ranges of the source, in their order. */
export async function writePieces(sourcePath: string, targetPath: string, pieces: readonly Piece[]): Promise<void> {
  await using source = await open(sourcePath)
  await using target = await open(targetPath, 'w')
  for (const piece of pieces) {
    if (Buffer.isBuffer(piece)) await target.write(piece)
    else await copyRange(source, target, piece.start, piece.end)
  }
}

/** Bits 2 to 4 of a graphic control's flags. */
const DISPOSAL_BITS = 0x1c

/** Clears the canvas after every frame. ffmpeg of 2018 lets a frame show through the transparent parts of the next. */
export async function clearAfterEachFrame(path: string): Promise<void> {
  await using file = await open(path, 'r+')
  for await (const block of readGifBlocks(path)) {
    if (block.kind !== 'graphic-control') continue
    const flags = Buffer.alloc(1)
    await file.read(flags, 0, 1, block.start + 3)
    flags[0] = ((flags[0] ?? 0) & ~DISPOSAL_BITS) | (DISPOSAL.toBackground << 2)
    await file.write(flags, 0, 1, block.start + 3)
  }
}

async function piecesToKeep(path: string): Promise<Piece[]> {
  const screen: Piece[] = []
  const pieces: Piece[] = []
  let control: GifBlock | undefined
  let loop: Buffer[] = []
  for await (const block of readGifBlocks(path)) {
    if (block.kind === 'screen') screen.push(Buffer.from('GIF89a'), { start: 6, end: block.end })
    // The last of several counts.
    if (block.kind === 'loop') loop = [loopBlock(block.loopCount)]
    // A graphic control belongs to the next image or text block; that of a dropped text block is dropped with it.
    if (block.kind === 'graphic-control') control = block
    if (block.kind === 'text') control = undefined
    if (block.kind !== 'image') continue
    if (control) keepRange(pieces, control)
    keepRange(pieces, block)
    control = undefined
  }
  // The loop block belongs before the first frame; a file without a trailer gets one.
  return [...screen, ...loop, ...pieces, trailerBlock]
}

/** Joins adjacent ranges, so that most files are copied in a few reads. */
function keepRange(pieces: Piece[], { start, end }: GifBlock): void {
  const last = pieces.at(-1)
  if (last && !Buffer.isBuffer(last) && last.end === start) last.end = end
  else pieces.push({ start, end })
}

async function copyRange(source: FileHandle, target: FileHandle, start: number, end: number): Promise<void> {
  const buffer = Buffer.allocUnsafe(Math.min(COPY_BYTES, end - start))
  for (let at = start; at < end; ) {
    const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.length, end - at), at)
    if (bytesRead === 0) throw new Error('the source became shorter while it was copied')
    await target.write(buffer, 0, bytesRead)
    at += bytesRead
  }
}
