import { open } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Size } from '../../core/clips/geometry.ts'

/** Codes have 12 bits at most, and colors 2 to 8 (GIF89a, appendix F). */
const [MAX_CODES, MAX_BITS, MIN_COLOR_BITS, MAX_COLOR_BITS] = [4096, 12, 2, 8]

const CHUNK_BYTES = 64 * 1024

/** Pixels that are decoded before other work gets a turn: a few kilobytes of codes can be millions. */
const PIXELS_PER_TURN = 500_000

/**
 * Counts the rows of an image that are there, by the lengths of its LZW codes. No pixel is decoded but into `pixels`,
 * which get their colors in the order of the file. `start` is that of the size of its codes. Other work gets turns, so
 * that a large image does not delay it. Codes after the last row are not read, nor those after more clear codes than
 * pixels. Throws if the signal is aborted.
 */
export async function countWholeRows(
  path: string,
  { width, height, start, end, pixels }: Size & { start: number; end: number; pixels?: Uint8Array },
  signal?: AbortSignal,
): Promise<number> {
  await using file = await open(path)
  const buffer = Buffer.alloc(CHUNK_BYTES)
  let counter: ReturnType<typeof pixelCounter> | undefined
  let [leftInBlock, decoded] = [0, 0]
  for (let at = start; at < end && !counter?.isEnded(); ) {
    signal?.throwIfAborted()
    const { bytesRead } = await file.read(buffer, 0, Math.min(CHUNK_BYTES, end - at), at)
    if (bytesRead === 0) break
    at += bytesRead
    for (let n = 0; n < bytesRead; n++) {
      const byte = buffer.readUInt8(n)
      if (!counter) counter = pixelCounter(byte, width * height, pixels)
      else if (leftInBlock === 0) leftInBlock = byte
      else {
        leftInBlock--
        counter.take(byte)
        if (pixels && counter.count() - decoded > PIXELS_PER_TURN) {
          decoded = counter.count()
          await nextTurn()
        }
      }
    }
  }
  return Math.min(height, Math.floor((counter?.count() ?? 0) / Math.max(1, width)))
}

/** Counts the pixels of codes, lowest bits first. Ends at `most`, the end code or an invalid one. */
function pixelCounter(colorBits: number, most: number, pixels?: Uint8Array) {
  const clear = 1 << colorBits
  const lengths = new Int32Array(MAX_CODES).fill(1)
  /** Places in `pixels` of the codes that are no single color: such a code repeats what is there. */
  const places = new Int32Array(MAX_CODES)
  let placeBefore = 0
  let isEnded = most === 0 || colorBits < MIN_COLOR_BITS || colorBits > MAX_COLOR_BITS
  let [count, clears] = [0, 0]
  let [codeBits, next, before] = [colorBits + 1, clear + 2, -1]
  let [pending, pendingBits] = [0, 0]

  function takeCode(code: number): void {
    if (code === clear) {
      // Encoders write one for each pixel at most.
      isEnded = ++clears > most
      ;[codeBits, next, before] = [colorBits + 1, clear + 2, -1]
      return
    }
    if (before >= 0 && next < MAX_CODES) {
      places[next] = placeBefore
      lengths[next++] = (lengths[before] ?? 0) + 1
      if (next === 1 << codeBits && codeBits < MAX_BITS) codeBits++
    }
    isEnded = code === clear + 1 || code >= next
    if (isEnded) return
    const length = lengths[code] ?? 0
    if (pixels) decode(code, pixels.subarray(0, count + length))
    placeBefore = count
    count += length
    isEnded = count >= most
    before = code
  }

  /** One by one, because the last pixel of a code may be the first that it writes. */
  function decode(code: number, pixels: Uint8Array): void {
    const from = (places[code] ?? 0) - count
    for (let at = count; at < pixels.length; at++) pixels[at] = code < clear ? code : (pixels[at + from] ?? 0)
  }

  return {
    count: () => count,
    isEnded: () => isEnded,
    take(byte: number) {
      pending |= byte << pendingBits
      pendingBits += 8
      while (pendingBits >= codeBits && !isEnded) {
        const code = pending & ((1 << codeBits) - 1)
        pending >>>= codeBits
        pendingBits -= codeBits
        takeCode(code)
      }
      if (isEnded) pendingBits = 0
    },
  }
}
