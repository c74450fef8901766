import { colorError } from './color-error.ts'
import type { ChangedPixels, FramePalette } from './frame-palette.ts'

/** Codes have 12 bits at most (GIF89a, appendix F). */
const MAX_CODES = 4096
const MAX_BITS = 12

/** No color: three bytes are less. */
const TRANSPARENT = 1 << 24

/** A kept pixel is cheaper than its error: the next one is likely kept too. */
const KEPT_PART = 0.3

/** A picture to write, and the limits of its errors; rows of the whole picture. */
export interface LossyPicture {
  /** RGB, 3 bytes a pixel. */
  frame: Uint8Array
  /** RGB that viewers show; the encoder adds its own. */
  shown: Uint8Array
  /** Error of each pixel if it keeps its shown color. */
  keptErrors: Int32Array
  /** Largest error of each pixel in another color than its nearest; negative where the pixel must be kept. */
  mostChanged: Int32Array
}

/**
 * Returns an encoder that lengthens a match by any entry of the dictionary within the limits, the one with the least
 * error first. Looking further ahead for longer matches costs more quality than it saves bytes (measured on six clips:
 * 10 %).
 */
export function createLossyLzw(pixels: number, width: number) {
  // The dictionary is a tree of codes. 0 means none, because the codes of single colors have no parent.
  const firstChildren = new Uint16Array(MAX_CODES)
  const siblings = new Uint16Array(MAX_CODES)
  /** Last color of each code: its index, and RGB in one number. */
  const lastColors = new Uint8Array(MAX_CODES)
  const lastPacked = new Int32Array(MAX_CODES)
  const packedColors = new Int32Array(256)
  const output = new Uint8Array(2 * pixels + 4096)

  return (
    picture: LossyPicture,
    { left, top, right, bottom, flags }: ChangedPixels,
    palette: FramePalette,
    bits: number,
  ) => {
    const { frame, shown, keptErrors, mostChanged } = picture
    const { bytes, nearest, colors: transparent } = palette
    const clear = 1 << bits
    let length = 0
    let pending = 0
    let pendingBits = 0
    let codeBits = bits + 1
    let next = clear + 2
    let code = -1
    for (let color = 0; color < transparent; color++) {
      packedColors[color] = (bytes[3 * color]! << 16) | (bytes[3 * color + 1]! << 8) | bytes[3 * color + 2]!
    }
    packedColors[transparent] = TRANSPARENT

    const put = (value: number) => {
      pending |= value << pendingBits
      for (pendingBits += codeBits; pendingBits >= 8; pendingBits -= 8) {
        output[length++] = pending & 0xff
        pending >>>= 8
      }
    }
    const restart = () => {
      put(clear)
      firstChildren.fill(0, 0, clear)
      codeBits = bits + 1
      next = clear + 2
    }
    const add = (parent: number, color: number) => {
      if (next >= MAX_CODES) return restart()
      firstChildren[next] = 0
      siblings[next] = firstChildren[parent]!
      firstChildren[parent] = next
      lastColors[next] = color
      lastPacked[next] = packedColors[color]!
      if (next === 1 << codeBits && codeBits < MAX_BITS) codeBits++
      next++
    }
    const childOf = (parent: number, color: number) => {
      let child = firstChildren[parent]!
      while (child !== 0 && lastColors[child] !== color) child = siblings[child]!
      return child
    }

    /** Finds the child within the limits that has the least error; 0 if none is. */
    const bestChild = (parent: number, pixel: number, canKeep: boolean) => {
      const red = frame[3 * pixel]!
      const green = frame[3 * pixel + 1]!
      const blue = frame[3 * pixel + 2]!
      const limit = mostChanged[pixel]!
      const keptError = keptErrors[pixel]! * KEPT_PART
      let least = limit
      let best = 0
      let kept = 0
      for (let child = firstChildren[parent]!; child !== 0; child = siblings[child]!) {
        const packed = lastPacked[child]!
        if (packed === TRANSPARENT) kept = child
        else {
          const error = colorError((packed >> 16) - red, ((packed >> 8) & 0xff) - green, (packed & 0xff) - blue)
          if (error <= least) {
            least = error
            best = child
          }
        }
      }
      return kept !== 0 && canKeep && (best === 0 || keptError <= least) ? kept : best
    }
    /** Ends the match with a pixel of this color. */
    const beginMatch = (color: number) => {
      const child = code < 0 ? 0 : childOf(code, color)
      if (child !== 0) {
        code = child
        return
      }
      if (code >= 0) {
        put(code)
        add(code, color)
      }
      code = color
    }

    restart()
    for (let y = top; y < bottom; y++) {
      for (let x = left; x < right; x++) {
        const pixel = y * width + x
        const at = 3 * pixel
        const canKeep = flags[pixel] === 0
        const child = code < 0 ? 0 : bestChild(code, pixel, canKeep)
        const color =
          child !== 0 ? lastColors[child]! : canKeep ? transparent : nearest(frame[at]!, frame[at + 1]!, frame[at + 2]!)
        if (child !== 0) code = child
        else beginMatch(color)
        if (color === transparent) continue
        shown[at] = bytes[3 * color]!
        shown[at + 1] = bytes[3 * color + 1]!
        shown[at + 2] = bytes[3 * color + 2]!
      }
    }
    put(code)
    // A reader counts the last code as well.
    if (next === 1 << codeBits && codeBits < MAX_BITS) codeBits++
    put(clear + 1)
    if (pendingBits > 0) output[length++] = pending
    return output.subarray(0, length)
  }
}
