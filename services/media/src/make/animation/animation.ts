import type { FileHandle } from 'node:fs/promises'

/**
 * This folder reads animated images of browsers and writes all as one kind, an APNG with nothing but its frames, which
 * ffmpeg decodes. Readers trust no number of the file, and never read pixels. Tests: test/source-types.slow.test.ts.
 */
export interface Animation {
  width: number
  height: number
  /** Number of times that it is shown; 0 is for ever. */
  plays: number
  /** False only if every pixel is certainly covered. */
  mayBeTransparent: boolean
  /** Chunks of the header that the pixels need; of an APNG only. */
  header: Part[]
}

export interface Part {
  type: string
  start: number
  length: number
}

/** Numbers as an APNG writes them. */
export interface AnimationFrame {
  left: number
  top: number
  width: number
  height: number
  delay: { numerator: number; denominator: number }
  /** 0 keeps the frame, 1 clears it, 2 restores what was before. */
  dispose: number
  /** 0 replaces pixels, 1 lays them over. */
  blend: number
  /** Bytes of its pixels. */
  parts: Part[]
}

/** The file ends early, perhaps within the pixels of the frame before. */
export interface EarlyEnd {
  endsEarly: true
}

export type AnimationPart = Animation | AnimationFrame | EarlyEnd

export const isFrame = (read: AnimationPart): read is AnimationFrame => 'delay' in read
export const isEarlyEnd = (read: AnimationPart): read is EarlyEnd => 'endsEarly' in read

export class BrokenAnimation extends Error {
  override readonly name = 'BrokenAnimation'
}

/** One picture in a format that could have more. */
export class StillImage extends Error {
  override readonly name = 'StillImage'
}

/** Real files have a few hundred; 150 MB could hold 12 million empty ones. */
export const MAX_PARTS = 100_000

export async function readBytes(file: FileHandle, start: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(length), position: start })
  if (bytesRead < length) throw new BrokenAnimation(`ends at ${start + bytesRead}`)
  return buffer
}

/** Browsers show frames of up to 10 ms for 100 ms. */
export function shownDelay(numerator: number, denominator: number): AnimationFrame['delay'] {
  const isShort = numerator * 1000 <= denominator * 10
  return isShort ? { numerator: 1, denominator: 10 } : { numerator, denominator }
}

/** Throws BrokenAnimation for a frame outside the canvas. */
export function requireInside(canvas: { width: number; height: number }, frame: AnimationFrame): void {
  const { left, top, width, height } = frame
  if (width > 0 && height > 0 && left + width <= canvas.width && top + height <= canvas.height) return
  throw new BrokenAnimation(`frame of ${width}x${height} at ${left},${top}`)
}
