import type { Size } from '../../core/clips/geometry.ts'

/** Parts of a GIF89a file (W3C, 31 July 1990). */

export const EXTENSION = 0x21
export const IMAGE = 0x2c
export const TRAILER = 0x3b
export const GRAPHIC_CONTROL = 0xf9
export const APPLICATION = 0xff
/** The area of a frame after it was shown: left, transparent, or restored. */
export const DISPOSAL = { none: 1, toBackground: 2, toPrevious: 3 }

/** A block that repeats the frames; 0 means forever. */
export const loopBlock = (loopCount: number): Buffer =>
  Buffer.from([EXTENSION, APPLICATION, 11, ...Buffer.from('NETSCAPE2.0'), 3, 1, loopCount & 0xff, loopCount >> 8, 0])

export const trailerBlock = Buffer.from([TRAILER])

/** An image with a table of its own; the index after its colors is transparent. */
export interface GifImage extends Size {
  left: number
  top: number
  colors: number
  /** RGB, 3 bytes a color. */
  table: Uint8Array
  /** Bits of the first codes, less one. */
  bits: number
  /** LZW codes. */
  data: Uint8Array
}

const LONGEST_DELAY = 0xffff
const LONGEST_BLOCK = 255

/** `loopCount` 0 means forever, null plays once. */
export function gifHeader({ width, height }: Size, loopCount: number | null): Buffer {
  const screen = Buffer.alloc(7)
  screen.writeUInt16LE(width, 0)
  screen.writeUInt16LE(height, 2)
  screen[4] = 0x70 // 8 bits a channel, no global table
  return Buffer.concat([Buffer.from('GIF89a'), screen, ...(loopCount === null ? [] : [loopBlock(loopCount)])])
}

/** The place of an image, whose own table follows; without `tableBits` it has none. */
export function imageDescriptor(
  { left, top, width, height }: Size & { left: number; top: number },
  { tableBits, isInterlaced = false }: { tableBits: number | undefined; isInterlaced?: boolean },
): Buffer {
  const bytes = Buffer.alloc(10)
  bytes[0] = IMAGE
  for (const [at, value] of [left, top, width, height].entries()) bytes.writeUInt16LE(value, 1 + 2 * at)
  bytes[9] = (tableBits === undefined ? 0 : 0x80 | (tableBits - 1)) | (isInterlaced ? 0x40 : 0)
  return bytes
}

/**
 * An image that is shown for a delay in centiseconds; images that change nothing follow for more than a delay can be.
 */
export function gifFrame(image: GifImage, disposal: number, delay: number): Buffer {
  const first = Math.min(delay, LONGEST_DELAY)
  const place = imageDescriptor(image, { tableBits: image.bits })
  const written = Buffer.concat([control(image, disposal, first), place, tableOf(image), ...blocks(image)])
  return delay === first ? written : Buffer.concat([written, unchangedFrame(delay - first)])
}

/** A frame that shows the one before for longer. */
export const unchangedFrame = (delay: number): Buffer => gifFrame(NOTHING, DISPOSAL.none, delay)

/** One transparent pixel: clear, index 0, end. */
const NOTHING: GifImage = {
  ...{ left: 0, top: 0, width: 1, height: 1, colors: 0, table: new Uint8Array(0), bits: 2 },
  data: Uint8Array.of(0x44, 0x01),
}

function control({ colors }: GifImage, disposal: number, delay: number): Buffer {
  const bytes = Buffer.from([EXTENSION, GRAPHIC_CONTROL, 4, (disposal << 2) | 1, 0, 0, colors, 0])
  bytes.writeUInt16LE(delay, 4)
  return bytes
}

function tableOf({ bits, table }: GifImage): Buffer {
  const bytes = Buffer.alloc(3 * 2 ** bits)
  bytes.set(table)
  return bytes
}

function blocks({ bits, data }: GifImage): Uint8Array[] {
  const parts: Uint8Array[] = [Uint8Array.of(bits)]
  for (let at = 0; at < data.length; at += LONGEST_BLOCK) {
    const block = data.subarray(at, at + LONGEST_BLOCK)
    parts.push(Uint8Array.of(block.length), block)
  }
  return [...parts, Uint8Array.of(0)]
}
