import { inflateSync } from 'node:zlib'
import sharp, { type PngOptions } from 'sharp'
import { expect, test } from 'vitest'
import { interlacedBytes, readInterlaced, rowBytesOf } from './interlaced-pixels.ts'

const SIZE = { width: 45, height: 38 }
const PIXELS = SIZE.width * SIZE.height

/** Colors that repeat, so that an encoder filters rows. */
const raw = Buffer.from(
  Array.from({ length: 3 * PIXELS }, (_, at) => (at * at * 7 + Math.floor(at / (3 * SIZE.width)) * 31) & 0xf0),
)
const picture = () => sharp(raw, { raw: { ...SIZE, channels: 3 } })

/** Pixels of an interlaced PNG, as they are stored. */
async function interlaced(options: PngOptions) {
  const png = await picture()
    .png({ progressive: true, adaptiveFiltering: true, ...options })
    .toBuffer()
  const [depth, colorType] = [png.readUInt8(24), png.readUInt8(25)]
  const parts: Buffer[] = []
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    const start = at + 8
    if (png.toString('latin1', at + 4, start) === 'IDAT') parts.push(png.subarray(start, start + png.readUInt32BE(at)))
  }
  return { bytes: inflateSync(Buffer.concat(parts)), format: { depth, channels: colorType === 2 ? 3 : 1 } }
}

/** Pixels of stored passes without filters, from the top. */
function pixelsOf(bytes: Buffer, { depth, channels }: { depth: number; channels: number }): string[] {
  const found: string[] = Array(PIXELS).fill('')
  let at = 0
  for (const { left, top, right, down } of PASSES) {
    for (let y = top; y < SIZE.height; y += down) {
      const columns = Math.ceil((SIZE.width - left) / right)
      const bits = [...bytes.subarray(at + 1, at + rowBytesOf(columns, { depth, channels }))]
        .map((byte) => byte.toString(2).padStart(8, '0'))
        .join('')
      const size = depth * channels
      for (let n = 0; n < columns; n++) found[y * SIZE.width + left + n * right] = bits.slice(n * size, (n + 1) * size)
      at += rowBytesOf(columns, { depth, channels })
    }
  }
  return found
}

/** First pixel and steps of each pass, and the size of the block that its pixels fill. */
const PASSES = [
  { left: 0, top: 0, right: 8, down: 8, block: [8, 8] },
  { left: 4, top: 0, right: 8, down: 8, block: [4, 8] },
  { left: 0, top: 4, right: 4, down: 8, block: [4, 4] },
  { left: 2, top: 0, right: 4, down: 4, block: [2, 4] },
  { left: 0, top: 2, right: 2, down: 4, block: [2, 2] },
  { left: 1, top: 0, right: 2, down: 2, block: [1, 2] },
  { left: 0, top: 1, right: 1, down: 2, block: [1, 1] },
] as const

test.each<[string, PngOptions]>([
  ['three colors', {}],
  ['16 colors of a palette', { palette: true, colors: 16, dither: 0 }],
])('pixels of %s whose passes are missing fill blocks until then', async (_, options) => {
  const { bytes, format } = await interlaced(options)
  expect(bytes.length).toBe(interlacedBytes(SIZE, format))
  const whole = pixelsOf(readInterlaced(Buffer.from(bytes), SIZE, format)?.write(SIZE, 0) ?? bytes, format)
  let length = 0
  for (const { left, top, right, down, block } of PASSES) {
    const rowBytes = rowBytesOf(Math.ceil((SIZE.width - left) / right), format)
    length += Math.ceil((SIZE.height - top) / down) * rowBytes
    const read = readInterlaced(Buffer.from(bytes.subarray(0, length)), SIZE, format)
    expect(read?.height).toBe(SIZE.height)
    const [wide, high] = block
    const expected = whole.map((_, at) => {
      const [x, y] = [at % SIZE.width, Math.floor(at / SIZE.width)]
      return whole[(y - (y % high)) * SIZE.width + x - (x % wide)]
    })
    expect(pixelsOf(read?.write(SIZE, 0) ?? bytes, format)).toEqual(expected)
  }
})

test('pixels are those of the picture, whatever filters their rows have', async () => {
  const { bytes, format } = await interlaced({})
  const found = pixelsOf(readInterlaced(bytes, SIZE, format)?.write(SIZE, 0) ?? bytes, format)
  const expected = Array.from({ length: PIXELS }, (_, at) =>
    [...raw.subarray(3 * at, 3 * at + 3)].map((value) => value.toString(2).padStart(8, '0')).join(''),
  )
  expect(found).toEqual(expected)
})

test('of a first pass that ends early the rows of its blocks are there; an unknown filter is damage', async () => {
  const { bytes, format } = await interlaced({})
  const rowBytes = rowBytesOf(6, format)
  const read = readInterlaced(Buffer.from(bytes.subarray(0, 2 * rowBytes + 5)), SIZE, format)
  expect(read?.height).toBe(16)
  bytes[rowBytes] = 5
  expect(readInterlaced(bytes, SIZE, format)).toBeUndefined()
})
