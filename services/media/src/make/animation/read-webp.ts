import type { FileHandle } from 'node:fs/promises'
import {
  type Animation,
  type AnimationFrame,
  BrokenAnimation,
  MAX_PARTS,
  type Part,
  readBytes,
  requireInside,
  StillImage,
  shownDelay,
} from './animation.ts'

/** Flags of VP8X, and of a frame (RFC 9649, 2.7). */
const [ALPHA, ANIMATED] = [0x10, 0x02]
const [CLEARS, REPLACES] = [0x01, 0x02]

const FRAME_HEADER_BYTES = 16

/**
 * Walks the chunks of a WebP. Throws BrokenAnimation, also for a file that ends early, of which browsers show nothing,
 * and StillImage for one picture.
 */
export async function* readWebp(file: FileHandle): AsyncGenerator<Animation | AnimationFrame, void> {
  const riff = await readBytes(file, 0, 12)
  if (riff.toString('latin1', 0, 4) !== 'RIFF' || riff.toString('latin1', 8) !== 'WEBP') {
    throw new BrokenAnimation('no WebP signature')
  }
  const { size } = await file.stat()
  const end = 8 + riff.readUInt32LE(4)
  if (end > size) throw new BrokenAnimation(`ends at ${size}`)
  let animation: Animation | undefined
  let isBegun = false
  let left = MAX_PARTS
  for await (const part of readChunks(file, { start: 12, end })) {
    if (--left < 0) throw new BrokenAnimation(`more than ${MAX_PARTS} chunks`)
    const { type, start, length } = part
    if (!animation) {
      animation = await readHeader(file, part)
    } else if (type === 'ANIM') {
      if (length < 6) throw new BrokenAnimation('short ANIM')
      animation.plays = (await readBytes(file, start, 6)).readUInt16LE(4)
      isBegun = true
      yield animation
    } else if (type === 'ANMF' && isBegun) {
      const frame = await readFrame(file, part)
      left -= frame.parts.length
      requireInside(animation, frame)
      yield frame
    }
  }
  if (!isBegun) throw new BrokenAnimation('no ANIM')
}

async function* readChunks(
  file: FileHandle,
  { start, end }: { start: number; end: number },
): AsyncGenerator<Part, void> {
  for (let offset = start; offset + 8 <= end; ) {
    const head = await readBytes(file, offset, 8)
    const [type, length] = [head.toString('latin1', 0, 4), head.readUInt32LE(4)]
    if (offset + 8 + length > end) throw new BrokenAnimation(`${type} of ${length} bytes at ${offset}`)
    yield { type, start: offset + 8, length }
    offset += 8 + length + (length % 2)
  }
}

async function readHeader(file: FileHandle, { type, start, length }: Part): Promise<Animation> {
  if (type !== 'VP8X') throw new StillImage(type)
  if (length < 10) throw new BrokenAnimation('short VP8X')
  const fields = await readBytes(file, start, 10)
  const flags = fields.readUInt8(0)
  if (!(flags & ANIMATED)) throw new StillImage('not animated')
  const [width, height] = [fields.readUIntLE(4, 3) + 1, fields.readUIntLE(7, 3) + 1]
  return { width, height, plays: 0, mayBeTransparent: Boolean(flags & ALPHA), header: [] }
}

async function readFrame(file: FileHandle, { start, length }: Part): Promise<AnimationFrame> {
  if (length < FRAME_HEADER_BYTES) throw new BrokenAnimation('short ANMF')
  const fields = await readBytes(file, start, FRAME_HEADER_BYTES)
  const at = (offset: number) => fields.readUIntLE(offset, 3)
  const flags = fields.readUInt8(15)
  const parts: Part[] = []
  for await (const part of readChunks(file, { start: start + FRAME_HEADER_BYTES, end: start + length })) {
    if (['ALPH', 'VP8 ', 'VP8L'].includes(part.type)) parts.push(part)
    if (parts.length > 2) throw new BrokenAnimation('frame of several pictures')
  }
  if (parts.length === 0) throw new BrokenAnimation('frame without pixels')
  return {
    ...{ left: 2 * at(0), top: 2 * at(3), width: at(6) + 1, height: at(9) + 1 },
    delay: delayOf(at(12)),
    ...{ dispose: flags & CLEARS ? 1 : 0, blend: flags & REPLACES ? 0 : 1, parts },
  }
}

/** An APNG has 16 bits for each number: above 65 s hundredths are exact enough. */
function delayOf(milliseconds: number): AnimationFrame['delay'] {
  if (milliseconds <= 0xffff) return shownDelay(milliseconds, 1000)
  return { numerator: Math.min(0xffff, Math.round(milliseconds / 10)), denominator: 100 }
}

/** A frame as a file of its own. */
export function stillOf({ width, height, parts }: AnimationFrame, pixels: readonly Buffer[]): Buffer {
  const hasAlpha = parts.some(({ type }) => type === 'ALPH')
  const header = Buffer.alloc(10)
  header.writeUInt8(ALPHA)
  header.writeUIntLE(width - 1, 4, 3)
  header.writeUIntLE(height - 1, 7, 3)
  const pictures = parts.map(({ type }, n) => chunkOf(type, pixels[n] ?? Buffer.alloc(0)))
  const chunks = Buffer.concat([Buffer.from('WEBP'), ...(hasAlpha ? [chunkOf('VP8X', header)] : []), ...pictures])
  return chunkOf('RIFF', chunks)
}

function chunkOf(type: string, data: Buffer): Buffer {
  const head = Buffer.alloc(8)
  head.write(type, 'latin1')
  head.writeUInt32LE(data.length, 4)
  return Buffer.concat([head, data, Buffer.alloc(data.length % 2)])
}
