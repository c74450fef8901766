import { Readable } from 'node:stream'
import { createInflate, deflateSync, constants as zlib } from 'node:zlib'
import type { Size } from '../../core/clips/geometry.ts'
import type { Animation, AnimationFrame } from './animation.ts'
import { interlacedBytes, readInterlaced, rowBytesOf } from './interlaced-pixels.ts'

/** Header of an APNG: the last five bytes of IHDR (PNG, third edition, 11.2.1), and chunks such as the palette. */
interface Header {
  animation: Size & Pick<Animation, 'mayBeTransparent'>
  format: Uint8Array
  more: readonly { type: string; data: Uint8Array }[]
}

const CHANNELS: Record<number, number> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }
const INDEXED = 3

/**
 * Returns the last frame of a file that ends early, with the rows that are there. Chromium shows nothing in the others
 * where a frame replaces the whole canvas, or is laid over it in a format without transparency. They become
 * transparent, or white in such a format. Elsewhere what was there stays. Interlaced pixels fill blocks until those of
 * later passes come, but Chromium shows none of a frame that is laid over the canvas. Undefined without a row, unless
 * it replaces the frame before.
 */
export async function completeFrame(
  frame: AnimationFrame,
  pixels: readonly Buffer[],
  header: Header & { isFirst: boolean },
): Promise<{ frame: AnimationFrame; pixels: readonly Uint8Array[] } | undefined> {
  const { animation, format, isFirst } = header
  const [depth = 0, colorType = 0, , , isInterlaced] = format
  const pixelFormat = { depth, channels: CHANNELS[colorType] ?? 0 }
  const rowBytes = rowBytesOf(frame.width, pixelFormat)
  const allBytes = isInterlaced ? interlacedBytes(frame, pixelFormat) : rowBytes * frame.height
  const bytes = await inflate(pixels, allBytes)
  if (bytes?.length === allBytes) return { frame, pixels: [deflate(bytes)] }
  if (!bytes) return undefined
  const there = frame.blend === 0 || isFirst ? bytes : Buffer.alloc(0)
  const interlaced = isInterlaced ? readInterlaced(there, frame, pixelFormat) : undefined
  if (isInterlaced && !interlaced) return undefined
  const height = interlaced ? Math.min(frame.height, interlaced.height) : Math.floor(bytes.length / rowBytes)
  const isWholeCanvas = frame.width === animation.width && frame.height === animation.height
  const replacesAll = isWholeCanvas && (isFirst || frame.blend === 0 || !animation.mayBeTransparent)
  if (height === 0 && (isFirst || !replacesAll)) return undefined
  const shown = replacesAll ? frame : { ...frame, height }
  if (interlaced) return { frame: shown, pixels: [deflate(interlaced.write(shown, blankOf(header)))] }
  const rest = Buffer.alloc(rowBytes * (shown.height - height), blankOf(header))
  // Not filtered.
  for (let at = 0; at < rest.length; at += rowBytes) rest[at] = 0
  return { frame: shown, pixels: [deflate(Buffer.concat([bytes.subarray(0, height * rowBytes), rest]))] }
}

const deflate = (bytes: Uint8Array) => deflateSync(bytes, { level: 1 })

/** Returns the bytes that are there, and `most` at most; undefined if they are damaged. */
async function inflate(pixels: readonly Buffer[], most: number): Promise<Buffer | undefined> {
  const found: Buffer[] = []
  let left = most
  try {
    const inflating = Readable.from(pixels).pipe(createInflate({ finishFlush: zlib.Z_SYNC_FLUSH }))
    for await (const chunk of inflating) {
      found.push(chunk.subarray(0, left))
      left -= chunk.length
      if (left <= 0) break
    }
    return Buffer.concat(found)
  } catch {
    return undefined
  }
}

/** Byte of pixels that show nothing: transparent, or white, or the color of a palette that is nearest to both. */
function blankOf({ format, more }: Header): number {
  const [depth = 8, colorType] = format
  if (colorType !== INDEXED) return colorType === 0 || colorType === 2 ? 0xff : 0
  const colors = more.find(({ type }) => type === 'PLTE')?.data ?? new Uint8Array()
  const alphas = more.find(({ type }) => type === 'tRNS')?.data ?? new Uint8Array()
  const lightness = Array.from({ length: Math.min(colors.length / 3, 2 ** depth) }, (_, n) => {
    const [red = 0, green = 0, blue = 0] = colors.subarray(3 * n)
    return red + green + blue + 4 * (255 - (alphas[n] ?? 255))
  })
  return Math.max(0, lightness.indexOf(Math.max(...lightness))) * (0xff / (2 ** depth - 1))
}
