import { open } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Size } from '../../core/clips/geometry.ts'
import type { Area } from '../plan/unsure-pixels.ts'
import type { ColorTable } from './gif-blocks.ts'
import type { GifImage } from './gif-file.ts'
import { countWholeRows } from './whole-rows.ts'

/** First row of each pass, and the step to its next (GIF89a, appendix E). */
const PASSES = [
  [0, 8],
  [4, 8],
  [2, 4],
  [1, 2],
] as const

/** All colors that a GIF can have, so that one of them is mostly free. */
const [BITS, COLORS] = [8, 256]

/** Codes have one bit more until this many follow a clear code. */
const CODES_PER_CLEAR = 254

/** Rows that are written before other work gets a turn. */
const ROWS_PER_TURN = 64

type Image = Area & { start: number; end: number }

interface Colors {
  table: NonNullable<ColorTable>
  transparentColor: number | null
}

/**
 * Reads the rows that are there of an interlaced image that ends early: they are all over the picture. Others become
 * transparent, but in a first frame without a transparent color. There Chromium shows the row above of an earlier pass.
 * Undefined without a whole row. It takes some three bytes a pixel.
 */
export async function readInterlacedPart(
  path: string,
  image: Image,
  { table, transparentColor, isFirst }: Colors & { isFirst: boolean },
  signal?: AbortSignal,
): Promise<{ rows: number; image: GifImage } | undefined> {
  const { left, top, width, height } = image
  const pixels = new Uint8Array(width * height)
  const rows = await countWholeRows(path, { ...image, pixels }, signal)
  if (rows === 0) return undefined
  const read = pixels.subarray(0, rows * width)
  const colors = await readColors(path, table)
  const clear = transparentColor ?? freeColor(read, colors)
  const missing = { clear, repeats: isFirst && transparentColor === null }
  const data = await codesOf(inOrder(read, image, missing), width * height, signal)
  return { rows, image: { left, top, width, height, colors: clear, table: colors, bits: BITS, data } }
}

async function readColors(path: string, { start, end }: NonNullable<ColorTable>): Promise<Uint8Array> {
  await using file = await open(path)
  const colors = new Uint8Array(3 * COLORS)
  await file.read(colors, 0, end - start, start)
  return colors
}

/** Color of no pixel. If all are in use, the pixels of the rarest one get the color that is nearest to it. */
function freeColor(pixels: Uint8Array, colors: Uint8Array): number {
  const uses = new Uint32Array(COLORS)
  for (const color of pixels) uses[color] = (uses[color] ?? 0) + 1
  const rarest = uses.indexOf(Math.min(...uses))
  if (uses[rarest] === 0) return rarest
  const distances = Array.from(uses, (_, color) => (color === rarest ? Infinity : distance(colors, color, rarest)))
  const nearest = distances.indexOf(Math.min(...distances))
  for (let at = pixels.indexOf(rarest); at >= 0; at = pixels.indexOf(rarest, at)) pixels[at] = nearest
  return rarest
}

const distance = (colors: Uint8Array, one: number, other: number): number =>
  [0, 1, 2].reduce((sum, n) => sum + ((colors[3 * one + n] ?? 0) - (colors[3 * other + n] ?? 0)) ** 2, 0)

/** Yields the rows from top to bottom; one that is missing repeats a row above, or is clear. */
function* inOrder(
  pixels: Uint8Array,
  { width, height }: Size,
  { clear, repeats }: { clear: number; repeats: boolean },
): Generator<Uint8Array> {
  const order = PASSES.flatMap(([first, step]) =>
    Array.from({ length: Math.max(0, Math.ceil((height - first) / step)) }, (_, n) => first + n * step),
  )
  const places = new Int32Array(height)
  for (const [place, row] of order.entries()) places[row] = place
  const rowOf = (y: number) => pixels.subarray((places[y] ?? 0) * width, ((places[y] ?? 0) + 1) * width)
  const clearRow = new Uint8Array(width).fill(clear)
  for (let y = 0; y < height; y++) {
    const rows = [y, ...(repeats ? [y & ~1, y & ~3, y & ~7] : [])].map(rowOf)
    yield rows.find(({ length }) => length === width) ?? clearRow
  }
}

/** LZW codes of one pixel each: a clear code comes before they would grow. */
async function codesOf(rows: Iterable<Uint8Array>, pixels: number, signal?: AbortSignal): Promise<Uint8Array> {
  const [clear, end] = [COLORS, COLORS + 1]
  const codes = pixels + Math.ceil(pixels / CODES_PER_CLEAR) + 1
  const bytes = new Uint8Array(Math.ceil((codes * (BITS + 1)) / 8))
  let [length, pending, pendingBits, sinceClear, row] = [0, 0, 0, CODES_PER_CLEAR, 0]
  const put = (code: number) => {
    pending |= code << pendingBits
    for (pendingBits += BITS + 1; pendingBits >= 8; pendingBits -= 8) {
      bytes[length++] = pending & 0xff
      pending >>>= 8
    }
  }
  for (const colors of rows) {
    if (row++ % ROWS_PER_TURN === 0) {
      signal?.throwIfAborted()
      await nextTurn()
    }
    for (const color of colors) {
      if (sinceClear === CODES_PER_CLEAR) {
        put(clear)
        sinceClear = 0
      }
      put(color)
      sinceClear++
    }
  }
  put(end)
  if (pendingBits > 0) bytes[length] = pending
  return bytes
}
