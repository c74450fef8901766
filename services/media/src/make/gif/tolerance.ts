import type { Size } from '../../core/clips/geometry.ts'
import { ERROR_OF_ONE_STEP } from './color-error.ts'

/** Side of a cell in pixels; two by two cells are a window of ffmpeg's SSIM. */
const CELL = 4
export const CELL_BITS = Math.log2(CELL)

/** Constant of SSIM for 8 bits (Wang et al. 2004: C2 = (0.03 * 255)^2). It bounds the weight of flat parts. */
const FLAT = 58.5

/** Larger errors are visible in any texture, as trails of moving things. */
const MAX_STEPS = 20

export interface Tolerance {
  /** Measures a frame (RGB, 3 bytes a pixel). */
  measure(frame: Uint8Array, share: number): void
  /** The largest `colorError` that the pixels of each cell hide, row by row; valid until the next frame. */
  cells: Int32Array
  cellsAcross: number
}

/**
 * Creates the measure of the errors that a frame hides. SSIM divides an error by the variance of the windows around it.
 * Equal losses of SSIM are therefore large errors in texture and small ones in gradients. The loss is about `share`
 * squared.
 */
export function createTolerance({ width, height }: Size): Tolerance {
  const across = Math.ceil(width / CELL)
  const cells = across * Math.ceil(height / CELL)
  const sums = new Float64Array(cells)
  const squares = new Float64Array(cells)
  const pixels = new Float64Array(cells)
  const weights = new Float64Array(cells)
  const mostOfCells = new Int32Array(cells)
  const cellOf = (x: number, y: number) => (y >> CELL_BITS) * across + (x >> CELL_BITS)
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) pixels[cellOf(x, y)]!++

  function sumUpLuma(frame: Uint8Array) {
    sums.fill(0)
    squares.fill(0)
    for (let y = 0, at = 0; y < height; y++) {
      for (let x = 0; x < width; x++, at += 3) {
        const luma = (77 * frame[at]! + 150 * frame[at + 1]! + 29 * frame[at + 2]!) / 256
        const cell = cellOf(x, y)
        sums[cell]! += luma
        squares[cell]! += luma * luma
      }
    }
  }

  /** Weight of errors in the window whose first cell this is. */
  function weightOf(cell: number): number {
    const right = cell % across === across - 1 ? 0 : 1
    const below = cell + across < cells ? across : 0
    let sum = 0
    let square = 0
    let count = 0
    for (const part of [cell, cell + right, cell + below, cell + below + right]) {
      sum += sums[part]!
      square += squares[part]!
      count += pixels[part]!
    }
    return 1 / (2 * Math.max(0, square / count - (sum / count) ** 2) + FLAT)
  }

  function mostOf(cell: number, share: number): number {
    const left = cell % across === 0 ? 0 : 1
    const above = cell < across ? 0 : across
    const weight = weights[cell]! + weights[cell - left]! + weights[cell - above]! + weights[cell - above - left]!
    return ERROR_OF_ONE_STEP * Math.min(MAX_STEPS ** 2, (4 * share ** 2) / weight)
  }

  return {
    cells: mostOfCells,
    cellsAcross: across,
    measure(frame, share) {
      sumUpLuma(frame)
      for (let cell = 0; cell < cells; cell++) weights[cell] = weightOf(cell)
      for (let cell = 0; cell < cells; cell++) mostOfCells[cell] = mostOf(cell, share)
    },
  }
}
