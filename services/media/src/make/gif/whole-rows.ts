import { open } from 'node:fs/promises'
import type { Size } from '../../core/clips/geometry.ts'

/** Codes have 12 bits at most, and colors 2 to 8 (GIF89a, appendix F). */
const [MAX_CODES, MAX_BITS, MIN_COLOR_BITS, MAX_COLOR_BITS] = [4096, 12, 2, 8]

const CHUNK_BYTES = 64 * 1024

/**
 * Counts the rows of an image that are there, by the lengths of its LZW codes: no pixel is decoded. `start` is that
 * of the size of its codes. Each chunk is awaited, so that a large image delays no other work. Codes after the last row
 * are not read, nor those after more clear codes than pixels. Throws if the signal is aborted.
 */
export async function countWholeRows(
  path: string,
  { width, height, start, end }: Size & { start: number; end: number },
  signal?: AbortSignal,
): Promise<number> {
  await using file = await open(path)
  const buffer = Buffer.alloc(CHUNK_BYTES)
  let pixels: ReturnType<typeof pixelCounter> | undefined
  let leftInBlock = 0
  for (let at = start; at < end && !pixels?.isEnded(); ) {
    signal?.throwIfAborted()
    const { bytesRead } = await file.read(buffer, 0, Math.min(CHUNK_BYTES, end - at), at)
    if (bytesRead === 0) break
    at += bytesRead
    for (let n = 0; n < bytesRead; n++) {
      const byte = buffer.readUInt8(n)
      if (!pixels) pixels = pixelCounter(byte, width * height)
      else if (leftInBlock === 0) leftInBlock = byte
      else {
        leftInBlock--
        pixels.take(byte)
      }
    }
  }
  return Math.min(height, Math.floor((pixels?.count() ?? 0) / Math.max(1, width)))
}

/** Counts the pixels of codes, lowest bits first. Ends at `most`, the end code or an invalid one. */
function pixelCounter(colorBits: number, most: number) {
  const clear = 1 << colorBits
  const lengths = new Int32Array(MAX_CODES).fill(1)
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
      lengths[next++] = (lengths[before] ?? 0) + 1
      if (next === 1 << codeBits && codeBits < MAX_BITS) codeBits++
    }
    isEnded = code === clear + 1 || code >= next
    if (isEnded) return
    count += lengths[code] ?? 0
    isEnded = count >= most
    before = code
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
