import { colorError } from './color-error.ts'

/** One index more is transparent. */
export const MAX_COLORS = 255

/** Bits of each channel for which a nearest color is remembered. */
const KNOWN_BITS = 7
const KNOWN_SHIFT = 8 - KNOWN_BITS
/** No color: tables have fewer. */
const UNKNOWN = MAX_COLORS

/** Side of the cubes of colors that share candidates, in steps. */
const CUBE = 16
const CUBES = (256 / CUBE) ** 3
const middle = (value: number) => (value & -CUBE) + CUBE / 2
/** Distance of a corner of a cube from its middle. */
const REACH = Math.sqrt(colorError(CUBE / 2, CUBE / 2, CUBE / 2))

const MORE_THAN_ANY_ERROR = 2 ** 30

/** Finds the nearest colors of a palette that changes. Both tables are filled on demand. */
export function createNearest(bytes: Uint8Array) {
  const known = new Uint8Array(1 << (3 * KNOWN_BITS))
  const begins = new Int32Array(CUBES)
  const lengths = new Int32Array(CUBES)
  const candidates = new Uint8Array(CUBES * MAX_COLORS)
  const errors = new Int32Array(MAX_COLORS)
  const reds = new Int32Array(MAX_COLORS)
  const greens = new Int32Array(MAX_COLORS)
  const blues = new Int32Array(MAX_COLORS)
  let filled = 0
  let count = 0

  const errorOf = (color: number, red: number, green: number, blue: number) =>
    colorError(reds[color]! - red, greens[color]! - green, blues[color]! - blue)

  /** Lists the colors that may be nearest to some color of the cube, whose middle is given. */
  function fill(cube: number, red: number, green: number, blue: number) {
    let least = MORE_THAN_ANY_ERROR
    for (let color = 0; color < count; color++) {
      const error = errorOf(color, red, green, blue)
      errors[color] = error
      if (error < least) least = error
    }
    const most = Math.floor((Math.sqrt(least) + 2 * REACH) ** 2)
    begins[cube] = filled
    for (let color = 0; color < count; color++) if (errors[color]! <= most) candidates[filled++] = color
    lengths[cube] = filled - begins[cube]!
  }

  function search(red: number, green: number, blue: number): number {
    const cube = ((red >> 4) << 8) | ((green >> 4) << 4) | (blue >> 4)
    if (lengths[cube] === 0) fill(cube, middle(red), middle(green), middle(blue))
    const end = begins[cube]! + lengths[cube]!
    let least = MORE_THAN_ANY_ERROR
    let nearest = 0
    for (let at = begins[cube]!; at < end; at++) {
      const color = candidates[at]!
      const error = errorOf(color, red, green, blue)
      if (error >= least) continue
      least = error
      nearest = color
    }
    return nearest
  }

  return {
    forget(colors: number) {
      known.fill(UNKNOWN)
      lengths.fill(0)
      filled = 0
      count = colors
      for (let color = 0; color < colors; color++) {
        reds[color] = bytes[3 * color]!
        greens[color] = bytes[3 * color + 1]!
        blues[color] = bytes[3 * color + 2]!
      }
    },
    nearest(red: number, green: number, blue: number): number {
      const key =
        ((red >> KNOWN_SHIFT) << (2 * KNOWN_BITS)) | ((green >> KNOWN_SHIFT) << KNOWN_BITS) | (blue >> KNOWN_SHIFT)
      if (known[key] === UNKNOWN) known[key] = search(red, green, blue)
      return known[key]!
    },
  }
}
