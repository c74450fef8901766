// GIFs whose frames programs build differently, and what browsers show of them: browser-frames.slow.test.ts asks
// Chromium.
import { screenOf, trailer } from '../gif-bytes.ts'

const COLORS = {
  red: [220, 30, 30],
  white: [255, 255, 255],
  green: [20, 170, 60],
  blue: [30, 60, 220],
  black: [0, 0, 0],
}
type Color = keyof typeof COLORS
type Place = [left: number, top: number, width: number, height: number]
type Rgb = readonly number[]

interface Frame {
  place: Place
  color: Color
  /** Its graphic control names a transparent color. */
  isClear?: boolean
  /** A transparent part. */
  hole?: Place
  disposal: 1 | 2 | 3
  /** Half a second without it. */
  centiseconds?: number
  isInterlaced?: boolean
  /** Rows that are there, of the last frame of a file that ends early; interlaced ones in the order of their passes. */
  rows?: number
}

interface OddGif {
  screen: [number, number]
  /** Size that browsers show. */
  shown: [number, number]
  frames: Frame[]
  /** Bytes that are missing at the end. */
  missing?: number
  /** True if its files are made like those of another one: the frames for ffmpeg are enough. */
  isAlike?: boolean
}

const SCREEN: [number, number] = [96, 64]
const usual = { screen: SCREEN, shown: SCREEN }
const [FULL, PART, CORNER]: Place[] = [
  [0, 0, 96, 64],
  [16, 16, 48, 32],
  [0, 0, 8, 8],
]
const full = { place: FULL as Place, color: 'red', disposal: 1 } as const
const part = { place: PART as Place, color: 'green', disposal: 1 } as const
const corner = { place: CORNER as Place, color: 'black', disposal: 1 } as const
const HOLE: Place = [8, 8, 16, 16]

/** The background color of each screen is blue, which shows in none. All edges are multiples of 8. */
export const oddGifs: Record<string, OddGif> = {
  'an opaque frame is cleared': { ...usual, frames: [full, { ...part, disposal: 2 }, corner] },
  'a transparent frame is cleared': {
    ...usual,
    frames: [
      { ...full, isClear: true, disposal: 2 },
      { ...part, isClear: true, disposal: 2 },
      { ...corner, place: [8, 8, 16, 16], isClear: true },
    ],
  },
  'the first frame is smaller': {
    ...usual,
    frames: [
      { ...part, color: 'red' },
      { ...corner, place: [32, 24, 16, 8] },
    ],
  },
  'the first frame is smaller and has a hole': {
    ...usual,
    frames: [
      { ...part, color: 'red', isClear: true, hole: HOLE },
      { ...corner, place: [32, 24, 16, 8], isClear: true },
    ],
  },
  'a frame gives way to the one before': {
    ...usual,
    frames: [full, { ...part, isClear: true, hole: HOLE, disposal: 3 }, { ...corner, isClear: true }],
  },
  'a frame ends past the screen': { ...usual, frames: [full, { ...part, place: [80, 48, 32, 32] }, corner] },
  'the last frame is cleared': {
    ...usual,
    frames: [
      { ...full, disposal: 2 },
      { ...part, place: FULL as Place, disposal: 2 },
    ],
  },
  'the first frame has a hole': {
    ...usual,
    frames: [
      { ...full, isClear: true, hole: HOLE },
      { ...corner, isClear: true },
    ],
  },
  'a frame is interlaced': { ...usual, frames: [{ ...part, color: 'red' }, { ...full, isInterlaced: true }, corner] },
  'the first frame is larger than the screen': {
    ...{ screen: [40, 32], shown: SCREEN },
    frames: [full, corner],
  },
  'the first frame ends past the screen': {
    ...{ screen: [40, 32], shown: [64, 48] },
    frames: [{ ...full, place: [24, 16, 40, 32] }, corner],
  },
  'the first frame is wider and less high': {
    ...{ screen: [40, 32], shown: [64, 32] },
    frames: [{ ...full, place: [0, 0, 64, 16] }, corner],
  },
  'a later frame is larger than the screen': {
    ...{ screen: [40, 32], shown: [40, 32] },
    frames: [{ ...full, place: [0, 0, 40, 32] }, { ...part, place: [8, 8, 88, 56] }, corner],
  },
  'a later frame is outside of the screen': {
    ...{ screen: [40, 32], shown: [40, 32] },
    frames: [{ ...full, place: [0, 0, 40, 32] }, { ...part, place: [48, 40, 8, 8] }, corner],
  },
  'later frames are far outside of the screen': {
    ...{ screen: [40, 32], shown: [40, 32] },
    frames: [
      { ...full, place: [0, 0, 40, 32] },
      { ...part, place: [60_000, 0, 8, 8], disposal: 2 },
      { ...part, place: [0, 60_000, 8, 8] },
      { ...corner, place: [16, 16, 8, 8] },
    ],
  },
  'the last frame ends early': { ...usual, frames: [full, { ...part, place: FULL as Place, rows: 40 }] },
  'the last frame ends early and has a transparent color': {
    ...usual,
    frames: [full, { ...part, place: FULL as Place, isClear: true, rows: 24 }],
  },
  'the last frame is smaller and ends early': {
    ...usual,
    frames: [full, corner, { ...part, place: [0, 16, 64, 48], rows: 24 }],
  },
  ...Object.fromEntries(
    ([1, 2, 3] as const).map((disposal) => [
      `the last frame ends early after a smaller one of disposal ${disposal}`,
      {
        ...{ ...usual, isAlike: disposal !== 2 },
        frames: [full, { ...part, disposal }, { ...corner, place: FULL as Place, rows: 24 }],
      },
    ]),
  ),
  'the last frame has no row': {
    ...{ ...usual, isAlike: true },
    frames: [full, { ...part, place: FULL as Place, rows: 0 }],
  },
  'the last frame has no row after a smaller one': {
    ...usual,
    frames: [full, part, { ...corner, place: FULL as Place, rows: 0 }],
  },
  'the last frame is smaller and has no row': { ...{ ...usual, isAlike: true }, frames: [full, { ...part, rows: 0 }] },
  ...Object.fromEntries(
    (
      [
        ['is interlaced and ends early', 12, [full], {}],
        ['is interlaced and ends in its first pass', 6, [full], {}],
        ['is interlaced and ends early after a smaller one', 12, [full, part], {}],
        ['is interlaced, has a transparent color and ends early', 12, [full], { isClear: true }],
        ['is interlaced and smaller, and ends early', 9, [full, corner], { place: [0, 16, 64, 48] }],
        ['is interlaced and has no row', 0, [full], {}],
      ] as const
    ).map(([what, rows, before, last]) => [
      `the last frame ${what}`,
      {
        ...{ ...usual, isAlike: true },
        frames: [...before, { ...part, place: FULL as Place, isInterlaced: true, rows, ...last } as Frame],
      },
    ]),
  ),
  'the screen is empty': { ...{ screen: [0, 0], shown: SCREEN }, frames: [full, corner] },
}

/** Half a second a frame, so that each is met in a video of any rate. */
export const FRAME_SECONDS = 0.5

export function oddGif({ screen, frames, missing = 0 }: OddGif): Buffer {
  const palette = Object.values(COLORS).flat()
  const blocks = frames.flatMap(({ place, color, isClear, hole, disposal, centiseconds = 50, isInterlaced, rows }) => [
    Buffer.from([0x21, 0xf9, 4, (disposal << 2) | (isClear ? 1 : 0), centiseconds, 0, CLEAR, 0]),
    pictureOf(place, indexesOf(place, color, hole), { isInterlaced, rows }),
  ])
  const ending = frames.at(-1)?.rows === undefined ? [trailer] : []
  const whole = Buffer.concat([screenOf(screen, palette, Object.keys(COLORS).indexOf('blue')), ...blocks, ...ending])
  return whole.subarray(0, whole.length - missing)
}

const CLEAR = 5

function indexesOf([, , width, height]: Place, color: Color, hole?: Place): number[] {
  const [left, top, across, down] = hole ?? [0, 0, 0, 0]
  return Array.from({ length: width * height }, (_, at) => {
    const [x, y] = [at % width, Math.floor(at / width)]
    const isHole = x >= left && x < left + across && y >= top && y < top + down
    return isHole ? CLEAR : Object.keys(COLORS).indexOf(color)
  })
}

/**
 * Codes of four bits: a clear code every seventh keeps them from growing. All rows are alike but for holes, which are
 * not interlaced.
 */
function pictureOf(place: Place, all: number[], { isInterlaced, rows }: Pick<Frame, 'isInterlaced' | 'rows'>): Buffer {
  // Two pixels of the next row, so that the last byte is whole.
  const indexes = rows === undefined ? all : all.slice(0, rows * place[2] + 2)
  const words = place.flatMap((value) => [value & 255, value >> 8])
  const codes = [...indexes.flatMap((index, n) => (n % 6 === 0 ? [8, index] : [index])), 9, 0]
  const bytes = Array.from(
    { length: codes.length >> 1 },
    (_, n) => (codes[2 * n] ?? 0) | ((codes[2 * n + 1] ?? 0) << 4),
  )
  const parts = Array.from({ length: Math.ceil(bytes.length / 255) }, (_, n) => bytes.slice(255 * n, 255 * n + 255))
  const blocks = parts.flatMap((data) => [data.length, ...data])
  const head = [0x2c, ...words, isInterlaced ? 0x40 : 0, 3]
  return Buffer.from(rows === undefined ? [...head, ...blocks, 0] : [...head, ...blocks.slice(0, -1)])
}

/** Colors in the middle of each block of 8 x 8 pixels after each frame, over white. */
export function shownBlocks({ shown: [width, height], frames }: OddGif): Rgb[][] {
  const [across, down] = [width / 8, height / 8]
  let canvas: (Color | undefined)[] = Array(across * down).fill(undefined)
  return frames.map((frame) => {
    const { color, isClear, hole, disposal } = frame
    const [left, top, wide, high] = frame.place
    const { rows = high } = frame
    const before = [...canvas]
    // A frame that replaces the whole picture begins with nothing.
    if (rows < high && !isClear && wide >= width && high >= height) canvas = canvas.map(() => undefined)
    const isIn = (at: number, [x, y, w, h]: Place) => {
      const [blockX, blockY] = [8 * (at % across), 8 * Math.floor(at / across)]
      return blockX >= x && blockX < x + w && blockY >= y && blockY < y + h
    }
    const isInFrame = (_: unknown, at: number) => isIn(at, frame.place) && isThere(Math.floor(at / across) - top / 8)
    // The middle rows of blocks are the second pass.
    const isThere = (n: number) => (frame.isInterlaced ? Math.ceil(high / 8) + n < rows : 8 * n < rows)
    const isInHole = (at: number) => hole !== undefined && isIn(at, [left + hole[0], top + hole[1], hole[2], hole[3]])
    canvas = canvas.map((old, at) => (isInFrame(old, at) && !isInHole(at) ? color : old))
    const seen = canvas.map((each) => COLORS[each ?? 'white'])
    if (disposal === 2) canvas = canvas.map((each, at) => (isInFrame(each, at) ? undefined : each))
    if (disposal === 3) canvas = before
    return seen
  })
}

/** The same of pixels: RGBA, one picture. */
export function blocksOf(rgba: Uint8Array, width: number): Rgb[] {
  const height = rgba.length / 4 / width
  const found: Rgb[] = []
  for (let y = 4; y < height; y += 8)
    for (let x = 4; x < width; x += 8) found.push(overWhite(rgba, 4 * (y * width + x)))
  return found
}

const overWhite = (rgba: Uint8Array, at: number): Rgb => {
  const alpha = (rgba[at + 3] ?? 0) / 255
  return [0, 1, 2].map((channel) => Math.round((rgba[at + channel] ?? 0) * alpha + 255 * (1 - alpha)))
}

/** Largest difference of two lists of colors. */
export const distance = (some: Rgb[], others: Rgb[]): number =>
  some.length === others.length
    ? Math.max(...some.flatMap((color, n) => color.map((value, at) => Math.abs(value - (others[n]?.[at] ?? 999)))))
    : Number.POSITIVE_INFINITY
