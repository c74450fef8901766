// APNGs that end early, and what browsers show of them: browser-frames.slow.test.ts asks Chromium.
import { crc32, deflateSync } from 'node:zlib'
import { apngOf } from '../source-files.ts'

type Rgb = [red: number, green: number, blue: number]
export const CUT_COLORS: Rgb[] = [
  [220, 30, 30],
  [20, 170, 60],
  [30, 60, 220],
]
const WHITE: Rgb = [255, 255, 255]

export const CUT_SIZE: [width: number, height: number] = [96, 64]

export interface Kind {
  colorType: 0 | 2 | 3 | 6
  /** Size of the last frame, if it is not the canvas. */
  last?: [width: number, height: number]
  /** Size of the second frame, if it is not the canvas. */
  second?: [width: number, height: number]
  /** True if the last frame is laid over the second. */
  isLaidOver?: boolean
  isInterlaced?: boolean
  /** Rows of each frame behind those that its header says. */
  surplusRows?: number
}

export const CUT_KINDS: Record<string, Kind> = {
  gray: { colorType: 0 },
  'three colors': { colorType: 2 },
  'a palette': { colorType: 3 },
  transparency: { colorType: 6 },
  'a smaller last frame': { colorType: 2, last: [48, 64] },
  'three colors, laid over a smaller frame': { colorType: 2, second: [48, 32], isLaidOver: true },
  'a palette, laid over a smaller frame': { colorType: 3, second: [48, 32], isLaidOver: true },
  'transparency, laid over': { colorType: 6, isLaidOver: true },
}

/** Kinds whose last frame is whole, although the file ends behind it. */
export const WHOLE_KINDS: Record<string, Kind> = {
  'interlaced pixels': { colorType: 6, isInterlaced: true },
  'an interlaced palette': { colorType: 3, isInterlaced: true },
  'a small interlaced last frame': { colorType: 2, isInterlaced: true, last: [15, 15] },
  'more rows than it says': { colorType: 2, surplusRows: 3 },
  'more interlaced rows than it says': { colorType: 6, isInterlaced: true, surplusRows: 3 },
}

/** First column and row of each pass of interlaced pixels, and the steps to the next (PNG, third edition, 8.1). */
const PASSES = [
  ...[
    [0, 0, 8, 8],
    [4, 0, 8, 8],
    [0, 4, 4, 8],
    [2, 0, 4, 4],
  ],
  ...[
    [0, 2, 2, 4],
    [1, 0, 2, 2],
    [0, 1, 1, 2],
  ],
]

const PIXEL = {
  0: (n: number) => [90 + 40 * n],
  2: (n: number) => CUT_COLORS[n] ?? WHITE,
  3: (n: number) => [n],
  6: (n: number) => [...(CUT_COLORS[n] ?? WHITE), 255],
}

/** Three frames of one color each, not compressed. */
export function apngToCut({ colorType, last = CUT_SIZE, second = CUT_SIZE, isLaidOver, ...kind }: Kind): Buffer {
  const pictures = [0, 1, 2].map((n) => {
    const [width, height] = [CUT_SIZE, second, last][n] ?? CUT_SIZE
    const pixel = PIXEL[colorType](n)
    const passes = kind.isInterlaced ? PASSES : [[0, 0, 1, 1]]
    const rows = passes.flatMap(([left = 0, top = 0, right = 1, down = 1]) => {
      const row = Buffer.from([0, ...Array.from({ length: Math.ceil((width - left) / right) }, () => pixel).flat()])
      return Array.from({ length: Math.ceil((height - top) / down) }, () => row)
    })
    const surplus = rows.slice(0, kind.surplusRows ?? 0)
    const pixels = deflateSync(Buffer.concat([...rows, ...surplus]), { level: 0 })
    const header = Buffer.alloc(13)
    header.writeUInt32BE(width)
    header.writeUInt32BE(height, 4)
    header.set([8, colorType, 0, 0, kind.isInterlaced ? 1 : 0], 8)
    const colors = colorType === 3 ? [chunk('PLTE', Buffer.from([...CUT_COLORS, WHITE].flat()))] : []
    return Buffer.concat([Buffer.alloc(8), chunk('IHDR', header), ...colors, chunk('IDAT', pixels)])
  })
  const bytes = apngOf(pictures, { delay: [500, 500, 500], plays: 0 })
  if (!isLaidOver) return bytes
  const control = bytes.lastIndexOf('fcTL')
  bytes.writeUInt8(1, control + 4 + 25)
  bytes.writeUInt32BE(crc32(bytes.subarray(control, control + 30)), control + 30)
  return bytes
}

/** Read by `apngOf`, which makes the sums. */
function chunk(type: string, data: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  return Buffer.concat([length, Buffer.from(type, 'latin1'), data, Buffer.alloc(4)])
}

/** Kinds whose last frame is interlaced, and ends in its first pass or behind it. */
export const INTERLACED_KINDS: Record<string, Kind> = {
  'interlaced pixels': { colorType: 2, isInterlaced: true },
  'interlaced pixels and transparency': { colorType: 6, isInterlaced: true },
  'an interlaced palette': { colorType: 3, isInterlaced: true },
  'interlaced pixels, laid over a smaller frame': {
    colorType: 2,
    second: [48, 32],
    isLaidOver: true,
    isInterlaced: true,
  },
  'interlaced transparency, laid over': { colorType: 6, isLaidOver: true, isInterlaced: true },
}

/** The bytes up to the given row of the last frame. */
export function upToRow(rows: number, kind: Kind): Buffer {
  const bytes = apngToCut(kind)
  const { last = CUT_SIZE, colorType } = kind
  const rowBytes = 1 + last[0] * PIXEL[colorType](0).length
  // Type and number of the chunk, and the head of a stored block.
  return bytes.subarray(0, bytes.lastIndexOf('fdAT') + 8 + 7 + rows * rowBytes)
}

/** The bytes up to the given row of the first pass of the last frame, which is the canvas. */
export function upToPassRow(rows: number, kind: Kind): Buffer {
  const bytes = apngToCut(kind)
  const rowBytes = 1 + (CUT_SIZE[0] / 8) * PIXEL[kind.colorType](0).length
  return bytes.subarray(0, bytes.lastIndexOf('fdAT') + 8 + 7 + rows * rowBytes)
}

/** Colors in the middle of each block of 8 x 8 pixels of the last frame, over white. */
export function shownUpToRow(rows: number, { colorType, last = CUT_SIZE, isLaidOver, isInterlaced }: Kind): Rgb[] {
  const [width, height] = CUT_SIZE
  const colorOf = (n: number): Rgb => {
    const [red = 0, green = red, blue = red] = colorType === 3 ? (CUT_COLORS[n] ?? WHITE) : PIXEL[colorType](n)
    return [red, green, blue]
  }
  const keeps = last[0] < width || (isLaidOver && colorType === 6)
  const [across, before] = [width / 8, keeps ? colorOf(1) : WHITE]
  return Array.from({ length: across * (height / 8) }, (_, block) => {
    const [x, y] = [8 * (block % across), 8 * Math.floor(block / across)]
    // Chromium shows interlaced pixels that are laid over others once all are there.
    const there = isInterlaced && isLaidOver ? 0 : Math.min(rows, last[1])
    return x < last[0] && y < there ? colorOf(2) : before
  })
}
