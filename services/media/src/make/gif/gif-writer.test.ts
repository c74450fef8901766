import sharp from 'sharp'
import { describe, expect, test } from 'vitest'
import { createGifWriter, type GifFormat } from './gif-writer.ts'

const SIZE = { width: 61, height: 43 }
const PIXELS = SIZE.width * SIZE.height

type Color = readonly number[]

/** Frames of this size, RGB or RGBA by the number of channels. */
function framesOf(count: number, colorAt: (x: number, y: number, frame: number) => Color): Uint8Array[] {
  return Array.from({ length: count }, (_, frame) => {
    const bytes: number[] = []
    for (let y = 0; y < SIZE.height; y++) {
      for (let x = 0; x < SIZE.width; x++) bytes.push(...colorAt(x, y, frame))
    }
    return Uint8Array.from(bytes)
  })
}

/** Moves and has both texture and gradients. */
const busy = (x: number, y: number, frame: number): Color => {
  const texture = y > 20 ? ((x * 37 + y * 101 + frame * 53) * 2_654_435_761) >>> 26 : 0
  return [(x * 4 + frame * 9) & 0xff, (y * 5 + texture) & 0xff, (texture * 3 + frame) & 0xff]
}

/** Moves, with the grain of film. */
const grainy = (x: number, y: number, frame: number): Color => {
  const grain = (((x * 37 + y * 101 + frame * 53) * 2_654_435_761) >>> 28) - 8
  return [100 + 60 * Math.sin((x + frame) / 9), 90 + 50 * Math.sin(y / 7), 120].map(
    (value) => Math.round(value) + grain,
  )
}

function write(frames: Uint8Array[], format: Partial<GifFormat> = {}, totalCentiseconds?: number): Buffer {
  const parts: Buffer[] = []
  const budget = { bytes: Number.POSITIVE_INFINITY, frames: frames.length }
  const usual = { ...SIZE, delayCentiseconds: 6, loopCount: 0, hasAlpha: false, budget }
  const writer = createGifWriter({ ...usual, ...format }, (bytes) => parts.push(bytes))
  const reused = new Uint8Array(frames[0]?.length ?? 0)
  for (const frame of frames) {
    reused.set(frame)
    writer.write(reused)
  }
  writer.end(totalCentiseconds ?? frames.length * (format.delayCentiseconds ?? 6))
  return Buffer.concat(parts)
}

/** Decodes with libvips; RGBA of each image as viewers show it. */
async function show(gif: Buffer) {
  const { pages = 1, delay = [], loop } = await sharp(gif, { animated: true }).metadata()
  const bytes = await sharp(gif, { animated: true }).ensureAlpha().raw().toBuffer()
  const images = Array.from({ length: pages }, (_, at) => bytes.subarray(4 * PIXELS * at, 4 * PIXELS * (at + 1)))
  return { images, delay, loop }
}

/** Largest error of a channel, of pixels that `isChosen`. */
function largestError(image: Buffer, frame: Uint8Array, isChosen = (_y: number) => true): number {
  let largest = 0
  for (let pixel = 0; pixel < PIXELS; pixel++) {
    if (!isChosen(Math.floor(pixel / SIZE.width))) continue
    for (let channel = 0; channel < 3; channel++) {
      largest = Math.max(largest, Math.abs((image[4 * pixel + channel] ?? 0) - (frame[3 * pixel + channel] ?? 0)))
    }
  }
  return largest
}

describe('a GIF', () => {
  test('shows each frame at its time, and few colors exactly', async () => {
    const frames = framesOf(7, (x, y, frame) => ((x + frame) % 8 < 4 ? [200, 30, y < 9 ? 0 : 90] : [0, 0, 0]))
    const { images, delay, loop } = await show(write(frames))
    expect([images.length, delay, loop]).toEqual([7, Array(7).fill(60), 0])
    for (const [at, frame] of frames.entries()) expect(largestError(images[at] as Buffer, frame)).toBe(0)
  })

  test('hides larger errors in texture than in gradients, and none adds up', async () => {
    const frames = framesOf(40, busy)
    const { images } = await show(write(frames))
    const [gradient, all] = [(y: number) => y < 16, () => true].map((isChosen) =>
      Math.max(...frames.map((frame, at) => largestError(images[at] as Buffer, frame, isChosen))),
    )
    expect(gradient).toBeLessThanOrEqual(40)
    expect(all).toBeGreaterThan(gradient as number)
  })

  test('has the same bytes for the same frames', () => {
    expect(write(framesOf(5, busy))).toEqual(write(framesOf(5, busy)))
  })

  test('shows frames that change nothing as a longer one', async () => {
    const frames = framesOf(9, (x, y, frame) => busy(x, y, frame < 3 ? 0 : 1))
    const { delay } = await show(write(frames))
    expect(delay).toEqual([180, 360])
  })

  test.each([
    ['shorter', 39, 30],
    ['longer', 44, 80],
    ['not, if frames are missing', 48, 60],
  ])('lasts as long as its clip: the last frame is %s', async (_, total, last) => {
    const { delay } = await show(write(framesOf(7, busy), {}, total))
    expect(delay).toEqual([60, 60, 60, 60, 60, 60, last])
  })

  test('that would become too large gets coarser after its first fifth', async () => {
    const frames = framesOf(60, grainy)
    const free = write(frames)
    const bound = write(frames, { budget: { bytes: 0.9 * free.length, frames: 60 } })
    expect(bound.length).toBeLessThan(0.9 * free.length)
    const [freely, tightly] = [await show(free), await show(bound)]
    for (const at of [0, 8, 15]) expect(tightly.images[at]).toEqual(freely.images[at])
    expect(write(frames, { budget: { bytes: 1.1 * free.length, frames: 60 } })).toEqual(free)
  })

  test('splits a delay that no frame can have', async () => {
    const { images, delay } = await show(
      write(
        framesOf(2, (x) => [x, 0, 0]),
        { delayCentiseconds: 50_000 },
      ),
    )
    expect(delay).toEqual([655_350, 344_650])
    expect(images[1]).toEqual(images[0])
  })

  test.each([0, 3, 65_535])('repeats %i times', async (loopCount) => {
    const bytes = write(framesOf(2, busy), { loopCount })
    expect(bytes.readUInt16LE(29)).toBe(loopCount)
  })

  test('plays once without a loop block', () => {
    expect(write(framesOf(2, busy), { loopCount: null }).includes('NETSCAPE2.0')).toBe(false)
  })

  test('of a transparent clip is transparent where the frame is, and where it has become so', async () => {
    const isThere = (x: number, frame: number) => frame !== 3 && x > 5 * frame && x < 5 * frame + 20
    const frames = framesOf(6, (x, y, frame) => [...busy(x, y, frame), isThere(x, frame) ? 128 : 127])
    const { images, delay } = await show(write(frames, { hasAlpha: true }))
    expect(delay).toEqual(Array(6).fill(60))
    for (const [at, image] of images.entries()) {
      const wrong = Array.from({ length: PIXELS }).filter(
        (_, pixel) => image[4 * pixel + 3] !== (isThere(pixel % SIZE.width, at) ? 255 : 0),
      )
      expect(wrong).toEqual([])
    }
  })

  test('of one pixel, and of more colors than a table has, is valid', async () => {
    const one = write([Uint8Array.of(1, 2, 3)], { width: 1, height: 1 })
    expect((await sharp(one).removeAlpha().raw().toBuffer()).toJSON().data).toEqual([1, 2, 3])
    const noise = framesOf(3, (x, y, frame) => [x * 97, y * 61, x * y * 31 + frame * 7].map((value) => value & 0xff))
    expect((await show(write(noise))).images).toHaveLength(3)
  })

  test('ends each image with an end code of the width that a reader expects', () => {
    // The last three widths once ended with too few bits, as the only ones of 1,500.
    for (const width of [1, 3, 457, 458, 459]) {
      const frame = Uint8Array.from({ length: 3 * width }, (_, at) => (at * 2_654_435_761) >>> 24)
      expect([width, lastCode(write([frame], { width, height: 1 }))]).toEqual([width, 'end'])
    }
  })
})

/**
 * Reads the codes of a file with one image as GIF89a, appendix F, has their widths, and returns what the last one is.
 */
function lastCode(file: Buffer): string {
  const byte = (at: number) => file[at] ?? 0
  const tableBytes = (flags: number) => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0)
  const data: number[] = []
  /** Returns the place after the blocks. */
  const readBlocks = (from: number, target: number[] = []): number => {
    let at = from
    for (; byte(at) > 0; at += byte(at) + 1) target.push(...file.subarray(at + 1, at + 1 + byte(at)))
    return at + 1
  }
  let at = 13 + tableBytes(byte(10))
  while (byte(at) === 0x21) at = readBlocks(at + 2)
  at += 10 + tableBytes(byte(at + 9))
  const clear = 2 ** byte(at)
  readBlocks(at + 1, data)

  let [position, width, known] = [0, byte(at) + 1, clear + 2]
  while (position + width <= 8 * data.length) {
    let code = 0
    for (let bit = 0; bit < width; bit++, position++)
      code |= (((data[position >> 3] ?? 0) >> (position & 7)) & 1) << bit
    if (code === clear + 1) return 8 * data.length - position < 8 ? 'end' : 'early end'
    known++
    if (code === clear) [width, known] = [byte(at) + 1, clear + 2]
    else if (known > 2 ** width && width < 12) width++
  }
  return 'no end'
}
