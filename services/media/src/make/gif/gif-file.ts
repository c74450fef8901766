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
export const unchangedFrame = (delay: number): Buffer =>
  gifFrame(transparent({ width: 1, height: 1 }), DISPOSAL.none, delay)

/** A frame that changes nothing, and clears its area at its end. */
export const clearingFrame = (area: Size, delay: number): Buffer =>
  gifFrame(transparent(area), DISPOSAL.toBackground, delay)

const transparent = ({ width, height }: Size): GifImage => ({
  ...{ left: 0, top: 0, width, height, colors: 0, table: new Uint8Array(0), bits: 2 },
  data: codesOfZeros(width * height),
})

/** Codes of 2 colors' bits that clear the dictionary and end the image, and the last code of 12 bits. */
const [CLEAR, END, LAST_CODE] = [4, 5, 4095]

/** LZW codes of so many pixels of index 0. Each is a run that is longer by one than the run before. */
function codesOfZeros(pixels: number): Uint8Array {
  const bytes: number[] = []
  let [pending, pendingBits] = [0, 0]
  const put = (code: number, largest: number) => {
    pending |= code << pendingBits
    for (pendingBits += 32 - Math.clz32(largest); pendingBits >= 8; pendingBits -= 8, pending >>>= 8) {
      bytes.push(pending & 0xff)
    }
  }
  put(CLEAR, CLEAR)
  let length = 1
  for (let left = pixels; left > 0; length++) {
    const run = Math.min(length, left)
    put(run === 1 ? 0 : END + run - 1, END + length - 1)
    left -= run
    if (END + length - 1 < LAST_CODE) continue
    put(CLEAR, LAST_CODE)
    length = 0
  }
  put(END, END + length - 1)
  return Uint8Array.from([...bytes, pending])
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
