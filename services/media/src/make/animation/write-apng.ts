import { crc32 } from 'node:zlib'
import type { Size } from '../../core/clips/geometry.ts'
import type { AnimationFrame } from './animation.ts'
import { PNG_SIGNATURE } from './read-apng.ts'

/** Eight bits of red, green, blue and alpha, not interlaced (PNG, third edition, 11.2.1). */
export const RGBA = Buffer.from([8, 6, 0, 0, 0])

/** Writes an APNG frame by frame; the pixels of each are compressed already. */
export function createApngWriter(write: (bytes: Uint8Array) => void) {
  let sequence = 0
  let isFirst = true
  const chunk = (type: string, ...data: Uint8Array[]) => {
    const [name, body] = [Buffer.from(type, 'latin1'), Buffer.concat(data)]
    write(Buffer.concat([words(body.length), name, body, words(crc32(body, crc32(name)))]))
  }
  return {
    /** Takes the last five bytes of IHDR, and chunks such as the palette. */
    begin(
      { width, height }: Size,
      format: Uint8Array,
      more: readonly { type: string; data: Uint8Array }[],
      frames: number,
    ) {
      write(PNG_SIGNATURE)
      chunk('IHDR', words(width, height), format)
      chunk('acTL', words(frames, 0))
      for (const { type, data } of more) chunk(type, data)
    },
    frame({ width, height, left, top, delay, dispose, blend }: AnimationFrame, pixels: readonly Uint8Array[]) {
      const times = Buffer.alloc(6)
      times.writeUInt16BE(delay.numerator)
      times.writeUInt16BE(delay.denominator, 2)
      times.writeUInt8(dispose, 4)
      times.writeUInt8(blend, 5)
      chunk('fcTL', words(sequence++, width, height, left, top), times)
      for (const data of pixels) {
        if (isFirst) chunk('IDAT', data)
        else chunk('fdAT', words(sequence++), data)
      }
      isFirst = false
    },
    end: () => chunk('IEND'),
  }
}

function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [n, value] of values.entries()) bytes.writeUInt32BE(value, 4 * n)
  return bytes
}
