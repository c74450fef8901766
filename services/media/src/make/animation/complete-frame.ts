import { deflateSync, inflateSync, constants as zlib } from 'node:zlib'
import type { Size } from '../../core/clips/geometry.ts'
import type { Animation, AnimationFrame } from './animation.ts'

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
 * where a frame replaces the whole canvas, or is laid over it in a format without transparency. They become transparent,
 * or white in such a format. Elsewhere what was there stays. Undefined for interlaced pixels, whose rows are all over the
 * picture, and without a row that replaces the frame before.
 */
export function completeFrame(
  frame: AnimationFrame,
  pixels: readonly Buffer[],
  header: Header & { isFirst: boolean },
): { frame: AnimationFrame; pixels: readonly Uint8Array[] } | undefined {
  const { animation, format, isFirst } = header
  const [depth = 0, colorType = 0, , , isInterlaced] = format
  const rowBytes = 1 + Math.ceil((frame.width * depth * (CHANNELS[colorType] ?? 0)) / 8)
  const found = inflate(pixels, rowBytes * frame.height)
  if (found?.isWhole) return { frame, pixels }
  if (!found || isInterlaced) return undefined
  const height = Math.floor(found.bytes.length / rowBytes)
  const isWholeCanvas = frame.width === animation.width && frame.height === animation.height
  const replacesAll = isWholeCanvas && (isFirst || frame.blend === 0 || !animation.mayBeTransparent)
  if (height === 0 && (isFirst || !replacesAll)) return undefined
  const rest = Buffer.alloc(replacesAll ? rowBytes * (frame.height - height) : 0, blankOf(header))
  // Not filtered.
  for (let at = 0; at < rest.length; at += rowBytes) rest[at] = 0
  const rows = Buffer.concat([found.bytes.subarray(0, height * rowBytes), rest])
  return { frame: replacesAll ? frame : { ...frame, height }, pixels: [deflateSync(rows, { level: 1 })] }
}

/** Returns the bytes that are there, and `most` at most; undefined if they are damaged. */
function inflate(pixels: readonly Buffer[], most: number): { bytes: Buffer; isWhole: boolean } | undefined {
  const bytes = Buffer.concat(pixels)
  for (const finishFlush of [zlib.Z_FINISH, zlib.Z_SYNC_FLUSH]) {
    try {
      const inflated = inflateSync(bytes, { finishFlush, maxOutputLength: Math.max(1, most) })
      return { bytes: inflated, isWhole: finishFlush === zlib.Z_FINISH }
    } catch {}
  }
  return undefined
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
