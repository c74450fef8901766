// Adam7: interlaced pixels of a PNG are seven passes, each with rows of its own (PNG, third edition, 8.1).
import type { Size } from '../../core/clips/geometry.ts'

/** First column and row of each pass, and the steps to the next. */
const PASSES = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const

/** Sizes of the blocks that a pixel of each pass fills until later passes, as browsers show them; the last first. */
const BLOCKS = [
  [1, 1],
  [1, 2],
  [2, 2],
  [2, 4],
  [4, 4],
  [4, 8],
  [8, 8],
] as const

/** Bits of a sample, and samples of a pixel. */
export interface PixelFormat {
  depth: number
  channels: number
}

interface Pass {
  left: number
  top: number
  right: number
  down: number
  /** Start of its rows among those of all passes. */
  start: number
  rows: number
  /** Bytes of a row with that of its filter. */
  rowBytes: number
}

export const rowBytesOf = (width: number, { depth, channels }: PixelFormat): number =>
  1 + Math.ceil((width * depth * channels) / 8)

function passesOf({ width, height }: Size, format: PixelFormat): { passes: Pass[]; bytes: number } {
  let bytes = 0
  const passes = PASSES.map(([left, top, right, down]) => {
    const columns = Math.max(0, Math.ceil((width - left) / right))
    const rows = columns === 0 ? 0 : Math.max(0, Math.ceil((height - top) / down))
    const pass = { left, top, right, down, start: bytes, rows, rowBytes: rowBytesOf(columns, format) }
    bytes += rows * pass.rowBytes
    return pass
  })
  return { passes, bytes }
}

export const interlacedBytes = (size: Size, format: PixelFormat): number => passesOf(size, format).bytes

/**
 * Reads pixels that end early, and changes their bytes. `height` is the number of rows from the top whose pixels are
 * there or in the block of one. `write` returns the bytes of a picture of these, and of `blank` bytes where no block
 * is. Undefined for an unknown filter.
 */
export function readInterlaced(bytes: Buffer, size: Size, format: PixelFormat) {
  const { passes } = passesOf(size, format)
  const there = passes.map(({ start, rows, rowBytes }) =>
    Math.min(rows, Math.max(0, Math.floor((bytes.length - start) / rowBytes))),
  )
  for (const [n, { start, rowBytes }] of passes.entries()) {
    for (let row = 0; row < (there[n] ?? 0); row++) {
      const at = start + row * rowBytes
      if (!unfilter(bytes, { at, above: row === 0 ? null : at - rowBytes, rowBytes }, format)) return undefined
    }
  }
  const [first = passes[0] as Pass, firstRows = 0] = [passes[0], there[0]]
  return {
    height: firstRows < first.rows ? firstRows * first.down : size.height,
    write(target: Size, blank: number): Buffer {
      const made = passesOf(target, format)
      const written = Buffer.alloc(made.bytes, blank)
      for (const [n, pass] of made.passes.entries()) {
        for (let row = 0; row < pass.rows; row++) {
          const at = pass.start + row * pass.rowBytes
          const start = (passes[n]?.start ?? 0) + row * pass.rowBytes
          if (row < (there[n] ?? 0)) bytes.copy(written, at, start, start + pass.rowBytes)
          else fillRow(written, at, pass, { y: pass.top + row * pass.down, width: target.width })
        }
      }
      return written
    },
  }

  /** Writes a row that is missing, from the blocks in which its pixels are. */
  function fillRow(written: Buffer, at: number, pass: Pass, { y, width }: { y: number; width: number }): void {
    written[at] = 0 // no filter
    const blocks = Array.from({ length: 8 }, (_, x) => blockOf(x, y))
    for (let x = pass.left, column = 0; x < width; x += pass.right, column++) {
      const block = blocks[x % 8]
      if (!block) continue
      const from = (x - (x % block.width) - block.pass.left) / block.pass.right
      copyPixel({ bytes, row: block.row, column: from }, { bytes: written, row: at + 1, column }, format)
    }
  }

  /** Finds the smallest block around a pixel that is there; columns repeat after eight. */
  function blockOf(x: number, y: number): { width: number; pass: Pass; row: number } | undefined {
    for (const [width, height] of BLOCKS) {
      const [left, top] = [x - (x % width), y - (y % height)]
      const n = passes.findIndex((pass) => left % pass.right === pass.left && top % pass.down === pass.top)
      const pass = passes[n] as Pass
      const row = (top - pass.top) / pass.down
      if (row < (there[n] ?? 0)) return { width, pass, row: pass.start + row * pass.rowBytes + 1 }
    }
    return undefined
  }
}

interface Pixel {
  bytes: Buffer
  /** Start of the row's pixels. */
  row: number
  column: number
}

function copyPixel(from: Pixel, to: Pixel, { depth, channels }: PixelFormat): void {
  const bits = depth * channels
  if (bits >= 8) {
    const size = bits / 8
    const [start, end] = [from.row + from.column * size, to.row + to.column * size]
    for (let n = 0; n < size; n++) to.bytes[end + n] = from.bytes[start + n] ?? 0
    return
  }
  const shiftOf = (column: number) => 8 - bits - ((column * bits) % 8)
  const mask = (1 << bits) - 1
  const source = from.bytes[from.row + Math.floor((from.column * bits) / 8)] ?? 0
  const at = to.row + Math.floor((to.column * bits) / 8)
  const shift = shiftOf(to.column)
  const value = (source >> shiftOf(from.column)) & mask
  to.bytes[at] = ((to.bytes[at] ?? 0) & ~(mask << shift)) | (value << shift)
}

interface Row {
  at: number
  above: number | null
  rowBytes: number
}

/** Undoes the filter of a row in its place (PNG, third edition, 9.2). False for an unknown one. */
function unfilter(bytes: Buffer, { at, above, rowBytes }: Row, { depth, channels }: PixelFormat): boolean {
  const filter = bytes[at] ?? 0
  const step = Math.max(1, (depth * channels) / 8)
  if (filter > 4) return false
  if (filter === 0) return true
  bytes[at] = 0
  for (let n = 1; n < rowBytes; n++) {
    const left = n > step ? (bytes[at + n - step] ?? 0) : 0
    const up = above === null ? 0 : (bytes[above + n] ?? 0)
    const corner = above === null || n <= step ? 0 : (bytes[above + n - step] ?? 0)
    const predicted = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter] ?? 0
    bytes[at + n] = ((bytes[at + n] ?? 0) + predicted) & 0xff
  }
  return true
}

function paeth(left: number, up: number, corner: number): number {
  const [ofLeft, ofUp, ofCorner] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)]
  if (ofLeft <= ofUp && ofLeft <= ofCorner) return left
  return ofUp <= ofCorner ? up : corner
}
