import { type FileHandle, open } from 'node:fs/promises'
import { apiError } from '../../errors.ts'
import { APPLICATION, EXTENSION, GRAPHIC_CONTROL, IMAGE, TRAILER } from './gif-file.ts'

/**
 * The blocks of a GIF89a file (W3C, 31 July 1990) with their byte ranges, `end` exclusive. Pixels are never decoded.
 * `graphic-control` holds the delay as written; `gif-info.ts` has the browsers' reading of it.
 */
export type GifBlock = { start: number; end: number } & (
  | { kind: 'screen'; width: number; height: number }
  | { kind: 'graphic-control'; delayCentiseconds: number; disposal: number; hasTransparentColor: boolean }
  | { kind: 'image'; left: number; top: number; width: number; height: number }
  | { kind: 'loop'; loopCount: number }
  | { kind: 'text' | 'other' | 'trailer' }
)

/** The only memory that a hostile 150 MB file can claim. */
const CHUNK_BYTES = 256 * 1024
/** A real file has two blocks per frame; 150 MB could hold 50 million empty comments. */
const MAX_BLOCKS = 100_000

const PLAIN_TEXT = 0x01
/**
 * Walks the blocks in file order up to the trailer; bytes behind it are never read. A missing trailer is accepted, as in
 * every browser. Throws corrupt_media when the file ends inside a block or has none where one must start.
 */
export async function* readGifBlocks(path: string): AsyncGenerator<GifBlock> {
  await using file = await open(path)
  const bytes = byteReader(file)
  yield await readScreen(bytes)
  for (let blocks = 0; blocks < MAX_BLOCKS; blocks++) {
    if (await bytes.atEnd()) return
    const start = bytes.position()
    const introducer = (await bytes.take(1)).readUInt8(0)
    if (introducer === TRAILER) {
      yield { kind: 'trailer', start, end: bytes.position() }
      return
    }
    if (introducer === IMAGE) yield await readImage(bytes, start)
    else if (introducer === EXTENSION) yield await readExtension(bytes, start)
    else throw corrupt(`unknown block 0x${introducer.toString(16)} at ${start}`)
  }
  throw corrupt(`more than ${MAX_BLOCKS} blocks`)
}

async function readScreen(bytes: ByteReader): Promise<GifBlock> {
  const header = await bytes.take(13)
  const signature = header.toString('latin1', 0, 6)
  if (signature !== 'GIF87a' && signature !== 'GIF89a') throw corrupt('no GIF signature')
  const width = header.readUInt16LE(6)
  const height = header.readUInt16LE(8)
  await bytes.take(colorTableBytes(header.readUInt8(10)))
  return { kind: 'screen', start: 0, end: bytes.position(), width, height }
}

async function readImage(bytes: ByteReader, start: number): Promise<GifBlock> {
  const descriptor = await bytes.take(9)
  const [left, top] = [descriptor.readUInt16LE(0), descriptor.readUInt16LE(2)]
  const [width, height] = [descriptor.readUInt16LE(4), descriptor.readUInt16LE(6)]
  await bytes.take(colorTableBytes(descriptor.readUInt8(8)))
  await bytes.take(1) // LZW minimum code size
  await bytes.skipSubBlocks()
  return { kind: 'image', start, end: bytes.position(), left, top, width, height }
}

async function readExtension(bytes: ByteReader, start: number): Promise<GifBlock> {
  const label = (await bytes.take(1)).readUInt8(0)
  const firstSize = (await bytes.take(1)).readUInt8(0)
  if (firstSize === 0) return { kind: 'other', start, end: bytes.position() }
  const first = Buffer.from(await bytes.take(firstSize))

  if (label === GRAPHIC_CONTROL && firstSize === 4) {
    await bytes.skipSubBlocks()
    const flags = first.readUInt8(0)
    const control = { delayCentiseconds: first.readUInt16LE(1), disposal: (flags >> 2) & 7 }
    const hasTransparentColor = (flags & 1) === 1
    return { kind: 'graphic-control', start, end: bytes.position(), ...control, hasTransparentColor }
  }
  if (label === APPLICATION && /^(NETSCAPE2\.0|ANIMEXTS1\.0)$/.test(first.toString('latin1'))) {
    const size = (await bytes.take(1)).readUInt8(0)
    const data = Buffer.from(await bytes.take(size))
    if (size !== 0) await bytes.skipSubBlocks()
    const end = bytes.position()
    if (size === 3 && data.readUInt8(0) === 1) return { kind: 'loop', start, end, loopCount: data.readUInt16LE(1) }
    return { kind: 'other', start, end }
  }
  await bytes.skipSubBlocks()
  return { kind: label === PLAIN_TEXT ? 'text' : 'other', start, end: bytes.position() }
}

const colorTableBytes = (flags: number): number => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0)

type ByteReader = ReturnType<typeof byteReader>

/** Reads forward in chunks. A buffer from `take` is valid until the next call. */
function byteReader(file: FileHandle) {
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

  /** Synchronous within a chunk: 150 MB of one-byte sub-blocks would be 75 million awaits. */
  async function skipSubBlocks(): Promise<void> {
    while (!(await atEnd())) {
      while (at < filled) {
        const size = buffer.readUInt8(at)
        at += size + 1
        if (size === 0) return
      }
    }
    throw corrupt(`ends at ${base}`)
  }

  return { take, skipSubBlocks, atEnd, position: () => base + at }
}

const corrupt = (cause: string) => apiError('corrupt_media', { cause: `gif: ${cause}` })
