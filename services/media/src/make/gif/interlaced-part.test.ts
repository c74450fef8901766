import { readFile } from 'node:fs/promises'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { written } from '../../../test/clips.ts'
import { writeGifForFfmpeg } from './drawn-gif.ts'
import { gifHeader, imageDescriptor } from './gif-file.ts'

const [WIDTH, HEIGHT] = [64, 160]
/** Rows in the order of the file: each eighth, those between, and so on. */
const PASSES = [
  [0, 8],
  [4, 8],
  [2, 4],
  [1, 2],
] as const
const ORDER = PASSES.flatMap(([first, step]) =>
  Array.from({ length: Math.ceil((HEIGHT - first) / step) }, (_, n) => first + n * step),
)

/** More codes than fit into 12 bits, with repeats, in gray levels that are colors of the palette as they are. */
function noisyGif(levels: number): Promise<Buffer> {
  let seed = 1
  const next = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return (seed >> 16) % levels
  }
  const pixels = Buffer.from(
    Array.from({ length: WIDTH * HEIGHT }, (_, at) => (at % WIDTH < WIDTH / 2 ? next() : 7) * (256 / levels)),
  )
  return sharp(pixels, { raw: { width: WIDTH, height: HEIGHT, channels: 1 } })
    .gif({ progressive: true, dither: 0, effort: 1 })
    .toBuffer()
}

/** Rows of RGBA. */
async function rowsOf(gif: Buffer): Promise<Buffer[]> {
  const pixels = await sharp(gif).ensureAlpha().raw().toBuffer()
  return Array.from({ length: HEIGHT }, (_, row) => pixels.subarray(4 * WIDTH * row, 4 * WIDTH * (row + 1)))
}

const EMPTY = Buffer.alloc(4 * WIDTH)

/** Draws a file that ends early, and returns its rows. */
async function drawnRows(name: string, bytes: Buffer) {
  const source = await written(`${name}.gif`, bytes)
  const drawn = source.replace(name, `drawn-${name}`)
  await writeGifForFfmpeg(source, drawn)
  return rowsOf(await readFile(drawn))
}

test.each([16, 128])(
  'an interlaced image of %i colors, one of them transparent, that ends early is transparent in the rows that are missing',
  async (levels) => {
    const whole = await noisyGif(levels)
    const expected = await rowsOf(whole)
    const counts = []
    for (const length of [0.3, 0.5, 0.9].map((part) => whole.length * part)) {
      const rows = await drawnRows(`interlaced-${levels}-${length}`, whole.subarray(0, length))
      const count = ORDER.findIndex((row) => rows[row]?.[3] === 0)
      counts.push(count)
      expect(ORDER.map((row, n) => rows[row]?.equals(n < count ? (expected[row] as Buffer) : EMPTY))).toEqual(
        ORDER.map(() => true),
      )
    }
    expect(counts.toSorted((one, other) => one - other)).toEqual(counts)
    expect(new Set(counts).size).toBe(3)
  },
)

test('an opaque interlaced first frame repeats its rows, and loses its rarest color if all 256 are in use', async () => {
  const [there, gray] = [25, (row: number, x: number) => (row * WIDTH + x) % 256]
  const table = Buffer.from(Array.from({ length: 256 }, (_, level) => [level, level, level]).flat())
  const colors = Array.from({ length: there * WIDTH }, (_, at) => gray(Math.floor(at / WIDTH), at % WIDTH))
  // Gray 64 begins the last row, and is the rarest.
  const rarest = colors.map((level, at) => (level === 64 && at < 256 ? 65 : level))
  const place = imageDescriptor({ left: 0, top: 0, width: WIDTH, height: HEIGHT }, { tableBits: 8, isInterlaced: true })
  const head = [gifHeader({ width: WIDTH, height: HEIGHT }, null), place, table, Buffer.of(8)]
  const rows = await drawnRows('all-colors', Buffer.concat([...head, ...subBlocks(rarest)]))
  // Twenty rows of the first pass, and five of the second.
  const shown = (y: number) => ORDER.indexOf(y & 4 && (y & ~3) < 40 ? y & ~3 : y & ~7)
  const found = rows.map((row) => Array.from({ length: WIDTH }, (_, x) => row[4 * x]))
  const levels = (y: number) => rarest.slice(shown(y) * WIDTH, (shown(y) + 1) * WIDTH)
  expect(found).toEqual(
    rows.map((_, y) => levels(y).map((level) => (level === 64 ? expect.toBeOneOf([63, 65]) : level))),
  )
})

/** LZW of 8 bits: a clear code before each color keeps codes at 9 bits. No block ends the image. */
function subBlocks(colors: number[]): Buffer[] {
  const bits = colors.flatMap((color) => [256, color]).map((code) => code.toString(2).padStart(9, '0'))
  const lowestFirst = bits.flatMap((code) => [...code].reverse())
  const bytes = Array.from({ length: lowestFirst.length / 8 }, (_, n) =>
    Number.parseInt(
      lowestFirst
        .slice(8 * n, 8 * n + 8)
        .reverse()
        .join(''),
      2,
    ),
  )
  return Array.from({ length: Math.ceil(bytes.length / 255) }, (_, n) => {
    const part = bytes.slice(255 * n, 255 * n + 255)
    return Buffer.from([part.length, ...part])
  })
}
