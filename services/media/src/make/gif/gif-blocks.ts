import { type FileHandle, open } from 'node:fs/promises'
import { ApiError } from '@services/common/errors'
import { apiError } from '../../errors.ts'
import { APPLICATION, EXTENSION, GRAPHIC_CONTROL, IMAGE, TRAILER } from './gif-file.ts'

/**
 * The blocks of a GIF89a file (W3C, 31 July 1990) with their byte ranges, `end` exclusive. Pixels are never decoded.
 * `graphic-control` holds the delay as written; `gif-info.ts` has the browsers' reading of it.
 */
export type GifBlock = { start: number; end: number } & (
  | { kind: 'screen'; width: number; height: number; colors: ColorTable }
  | { kind: 'graphic-control'; delayCentiseconds: number; disposal: number; transparentColor: number | null }
  | { kind: 'image'; left: number; top: number; width: number; height: number; data: ImageData }
  | { kind: 'loop'; loopCount: number }
  /** The rest of the file, which cannot be read. */
  | { kind: 'text' | 'other' | 'trailer' | 'lost' }
)

/** Bytes of an image behind its place. */
export interface ImageData {
  isInterlaced: boolean
  colors: ColorTable
  /** Start of LZW's code size and the sub-blocks. */
  start: number
  /** Start of the sub-block in which the file ends; null for a whole image. */
  cutAt: number | null
}

/** Colors of a table behind its block's first bytes; null without one. */
export type ColorTable = { start: number; end: number; bits: number } | null

/** The only memory that a hostile 150 MB file can claim. */
const CHUNK_BYTES = 256 * 1024
/** A real file has two blocks per frame; 150 MB could hold 50 million empty comments. */
const MAX_BLOCKS = 100_000

const PLAIN_TEXT = 0x01

/**
 * Walks the blocks in file order up to the trailer; bytes behind it are never read. A missing trailer is accepted, as
 * in every browser. A block `lost` is the last where the file ends inside a block or has none where one must start:
 * browsers show the frames before. An image whose pixels are cut short precedes it. Throws corrupt_media where no pixel
 * precedes the end.
 */
export async function* readGifBlocks(path: string): AsyncGenerator<GifBlock> {
  await using file = await open(path)
  const bytes = byteReader(file, (await file.stat()).size)
  yield await readScreen(bytes)
  let hasImage = false
  for (let blocks = 0; blocks < MAX_BLOCKS; blocks++) {
    if (await bytes.atEnd()) return
    const start = bytes.position()
    const block = await readBlock(bytes, start).catch((error) => {
      if (hasImage && error instanceof ApiError) return lostFrom(start)
      throw error
    })
    const isCut = block.kind === 'image' && block.data.cutAt !== null
    // The size of the codes and the length of a sub-block precede the first code.
    if (isCut && !hasImage && block.end <= block.data.start + 2) throw corrupt(`ends at ${block.end}`)
    hasImage ||= block.kind === 'image'
    yield block
    if (isCut) yield lostFrom(block.end)
    if (isCut || block.kind === 'trailer' || block.kind === 'lost') return
  }
  throw corrupt(`more than ${MAX_BLOCKS} blocks`)
}

const lostFrom = (start: number): GifBlock => ({ kind: 'lost', start, end: start })

async function readBlock(bytes: ByteReader, start: number): Promise<GifBlock> {
  const introducer = (await bytes.take(1)).readUInt8(0)
  if (introducer === TRAILER) return { kind: 'trailer', start, end: bytes.position() }
  if (introducer === IMAGE) return readImage(bytes, start)
  if (introducer === EXTENSION) return readExtension(bytes, start)
  throw corrupt(`unknown block 0x${introducer.toString(16)} at ${start}`)
}

async function readScreen(bytes: ByteReader): Promise<GifBlock> {
  const header = await bytes.take(13)
  const signature = header.toString('latin1', 0, 6)
  if (signature !== 'GIF87a' && signature !== 'GIF89a') throw corrupt('no GIF signature')
  const width = header.readUInt16LE(6)
  const height = header.readUInt16LE(8)
  const colors = await readColors(bytes, header.readUInt8(10))
  return { kind: 'screen', start: 0, end: bytes.position(), width, height, colors }
}

async function readImage(bytes: ByteReader, start: number): Promise<GifBlock> {
  const descriptor = await bytes.take(9)
  const [left, top] = [descriptor.readUInt16LE(0), descriptor.readUInt16LE(2)]
  const [width, height] = [descriptor.readUInt16LE(4), descriptor.readUInt16LE(6)]
  const flags = descriptor.readUInt8(8)
  const colors = await readColors(bytes, flags)
  const place = { left, top, width, height }
  const codes = bytes.position()
  await bytes.take(1) // LZW minimum code size
  const data = { isInterlaced: (flags & 0x40) > 0, colors, start: codes, cutAt: await bytes.skipSubBlocks() }
  return { kind: 'image', start, end: bytes.position(), ...place, data }
}

async function readExtension(bytes: ByteReader, start: number): Promise<GifBlock> {
  const label = (await bytes.take(1)).readUInt8(0)
  const firstSize = (await bytes.take(1)).readUInt8(0)
  if (firstSize === 0) return { kind: 'other', start, end: bytes.position() }
  const first = Buffer.from(await bytes.take(firstSize))

  if (label === GRAPHIC_CONTROL && firstSize === 4) {
    await skipWhole(bytes)
    const flags = first.readUInt8(0)
    const control = { delayCentiseconds: first.readUInt16LE(1), disposal: (flags >> 2) & 7 }
    const transparentColor = (flags & 1) === 1 ? first.readUInt8(3) : null
    return { kind: 'graphic-control', start, end: bytes.position(), ...control, transparentColor }
  }
  if (label === APPLICATION && /^(NETSCAPE2\.0|ANIMEXTS1\.0)$/.test(first.toString('latin1'))) {
    const size = (await bytes.take(1)).readUInt8(0)
    const data = Buffer.from(await bytes.take(size))
    if (size !== 0) await skipWhole(bytes)
    const end = bytes.position()
    if (size === 3 && data.readUInt8(0) === 1) return { kind: 'loop', start, end, loopCount: data.readUInt16LE(1) }
    return { kind: 'other', start, end }
  }
  await skipWhole(bytes)
  return { kind: label === PLAIN_TEXT ? 'text' : 'other', start, end: bytes.position() }
}

async function readColors(bytes: ByteReader, flags: number): Promise<ColorTable> {
  if (!(flags & 0x80)) return null
  const [start, bits] = [bytes.position(), (flags & 7) + 1]
  await bytes.take(3 * 2 ** bits)
  return { start, end: bytes.position(), bits }
}

async function skipWhole(bytes: ByteReader): Promise<void> {
  if ((await bytes.skipSubBlocks()) !== null) throw corrupt(`ends at ${bytes.position()}`)
}

type ByteReader = ReturnType<typeof byteReader>

/** Reads forward in chunks. A buffer from `take` is valid until the next call. */
function byteReader(file: FileHandle, size: number) {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  let filled = 0
  let base = 0
  let at = 0

  async function load(): Promise<void> {
    base += at
    at = 0
    filled = 0
    while (filled < CHUNK_BYTES) {
      const { bytesRead } = await file.read(buffer, filled, CHUNK_BYTES - filled, base + filled)
      if (bytesRead === 0) return
      filled += bytesRead
    }
  }

  async function atEnd(): Promise<boolean> {
    if (at >= filled) await load()
    return filled === 0
  }

  async function take(count: number): Promise<Buffer> {
    if (at + count > filled) await load()
    if (count > filled) throw corrupt(`ends at ${base + filled}`)
    at += count
    return buffer.subarray(at - count, at)
  }

  /**
   * Returns null, or where the last sub-block begins if the file ends in it. Synchronous within a chunk: 150 MB of
   * one-byte sub-blocks would be 75 million awaits.
   */
  async function skipSubBlocks(): Promise<number | null> {
    let last = base + at
    while (!(await atEnd())) {
      while (at < filled) {
        last = base + at
        const length = buffer.readUInt8(at)
        at += length + 1
        if (length === 0) return null
      }
    }
    return last
  }

  return { take, skipSubBlocks, atEnd, position: () => Math.min(size, base + at) }
}

const corrupt = (cause: string) => apiError('corrupt_media', { cause: `gif: ${cause}` })
