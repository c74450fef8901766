import { WEIGHTS } from './color-error.ts'
import { createNearest, MAX_COLORS } from './nearest-color.ts'

/**
 * Bits of each channel that distinguish colors: 7 gain 1 % of the bytes and cost a quarter of the time of noisy frames.
 */
const BITS = 6
const SHIFT = 8 - BITS
const BINS = 1 << (3 * BITS)

const FEWEST_COLORS = 16
/** A color takes 3 bytes and shortens matches, so a small change gets few. */
const PIXELS_PER_COLOR = 8

const CHANNELS = [0, 1, 2] as const
type Channel = (typeof CHANNELS)[number]

/** Pixels that need a color, within a rectangle; `right` and `bottom` are exclusive. */
export interface ChangedPixels {
  left: number
  top: number
  right: number
  bottom: number
  count: number
  /** 1 for each pixel that changes, row by row of the whole picture. */
  flags: Uint8Array
}

/** Valid until the next one is made. */
export interface FramePalette {
  colors: number
  /** RGB, 3 bytes a color. */
  bytes: Uint8Array
  nearest: (red: number, green: number, blue: number) => number
}

/** A range of the used bins, and its error as one color. */
interface Box {
  from: number
  to: number
  pixels: number
  sums: number[]
  error: number
  /** Channel with most of the error. */
  channel: Channel
}

/**
 * Returns a function that chooses colors for the changed pixels of a frame: median cut by variance, then one round of
 * k-means.
 */
export function createPaletteMaker(width: number): (frame: Uint8Array, changed: ChangedPixels) => FramePalette {
  /** Index of the bin in the dense arrays below plus one; 0 means unused. */
  const places = new Int32Array(BINS)
  const counts = new Int32Array(BINS)
  const sums = CHANNELS.map(() => new Int32Array(BINS)) as [Int32Array, Int32Array, Int32Array]
  const [reds, greens, blues] = sums
  const binsInUse = new Int32Array(BINS)
  /** Their places, box by box. */
  const used = new Int32Array(BINS)
  const bytes = new Uint8Array(3 * MAX_COLORS)
  const colors = createNearest(bytes)

  /** Counts the colors and returns the number of used bins. */
  function count(frame: Uint8Array, { left, top, right, bottom, flags }: ChangedPixels): number {
    let bins = 0
    for (let y = top; y < bottom; y++) {
      for (let pixel = y * width + left; pixel < y * width + right; pixel++) {
        if (flags[pixel] === 0) continue
        const at = 3 * pixel
        const red = frame[at]!
        const green = frame[at + 1]!
        const blue = frame[at + 2]!
        const bin = ((red >> SHIFT) << (2 * BITS)) | ((green >> SHIFT) << BITS) | (blue >> SHIFT)
        let place = places[bin]! - 1
        if (place < 0) {
          place = bins++
          places[bin] = bins
          binsInUse[place] = bin
          used[place] = place
          counts[place] = reds[place] = greens[place] = blues[place] = 0
        }
        counts[place]!++
        reds[place]! += red
        greens[place]! += green
        blues[place]! += blue
      }
    }
    return bins
  }

  function boxOf(from: number, to: number): Box {
    let pixels = 0
    const total = [0, 0, 0]
    const squares = [0, 0, 0]
    for (let at = from; at < to; at++) pixels += counts[used[at]!]!
    for (const channel of CHANNELS) {
      const ofChannel = sums[channel]
      let all = 0
      let square = 0
      for (let at = from; at < to; at++) {
        const sum = ofChannel[used[at]!]!
        all += sum
        square += (sum * sum) / counts[used[at]!]!
      }
      total[channel] = all
      squares[channel] = square
    }
    const errors = CHANNELS.map((channel) => WEIGHTS[channel] * (squares[channel]! - total[channel]! ** 2 / pixels))
    const channel = errors.indexOf(Math.max(...errors)) as Channel
    const error = to - from < 2 ? 0 : errors[0]! + errors[1]! + errors[2]!
    return { from, to, pixels, sums: total, error, channel }
  }

  /** Splits a box at the mean of its channel; undefined if all of it is on one side. */
  function split({ from, to, pixels, sums: total, channel }: Box): [Box, Box] | undefined {
    const mean = total[channel]! / pixels
    const ofChannel = sums[channel]
    let low = from
    let high = to - 1
    while (low <= high) {
      const place = used[low]!
      if (ofChannel[place]! / counts[place]! <= mean) low++
      else {
        used[low] = used[high]!
        used[high--] = place
      }
    }
    return low === from || low === to ? undefined : [boxOf(from, low), boxOf(low, to)]
  }

  function cut(bins: number, wanted: number): Box[] {
    const boxes = [boxOf(0, bins)]
    while (boxes.length < wanted) {
      let worst = 0
      for (let at = 1; at < boxes.length; at++) if (boxes[at]!.error > boxes[worst]!.error) worst = at
      const box = boxes[worst]!
      if (box.error <= 0) break
      const halves = split(box)
      if (halves) boxes.splice(worst, 1, ...halves)
      else box.error = 0
    }
    return boxes
  }

  /** Moves each color to the mean of the bins that are nearest to it. */
  function refine(bins: number, count: number) {
    const totals = new Float64Array(4 * count)
    for (let place = 0; place < bins; place++) {
      const weight = counts[place]!
      const red = reds[place]!
      const green = greens[place]!
      const blue = blues[place]!
      const mean = (sum: number) => Math.round(sum / weight)
      const color = 4 * colors.nearest(mean(red), mean(green), mean(blue))
      totals[color]! += red
      totals[color + 1]! += green
      totals[color + 2]! += blue
      totals[color + 3]! += weight
    }
    for (let color = 0; color < count; color++) {
      const weight = totals[4 * color + 3]!
      if (weight === 0) continue
      for (let channel = 0; channel < 3; channel++)
        bytes[3 * color + channel] = Math.round(totals[4 * color + channel]! / weight)
    }
  }

  return (frame, changed) => {
    const bins = count(frame, changed)
    const wanted = Math.min(MAX_COLORS, Math.max(FEWEST_COLORS, Math.floor(changed.count / PIXELS_PER_COLOR)), bins)
    const boxes = cut(bins, wanted)
    for (const [color, box] of boxes.entries()) {
      for (const channel of CHANNELS) bytes[3 * color + channel] = Math.round(box.sums[channel]! / box.pixels)
    }
    colors.forget(boxes.length)
    refine(bins, boxes.length)
    colors.forget(boxes.length)
    for (let place = 0; place < bins; place++) places[binsInUse[place]!] = 0
    return { colors: boxes.length, bytes, nearest: colors.nearest }
  }
}
