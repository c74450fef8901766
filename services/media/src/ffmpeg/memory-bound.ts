interface Size {
  width: number
  height: number
}

const MB = 1_000_000

/** 1080p as coders store it: in blocks of 16 lines. */
const FULL_HD = 1920 * 1088
const ULTRA_HD = 3840 * 2176
/** Beyond: 16 frames in the decoder, and both encoders. */
const BYTES_PER_PIXEL = 60

/**
 * Most memory in bytes that the programs of one upload take at once, without their libraries, which all share.
 * Exceptions: infra/SCALING.md. Tests: ../make/transcode/memory.slow.test.ts.
 */
export function memoryBound({ width, height }: Size): number {
  if (!isAboveFullHd({ width, height })) return 350 * MB
  return width * height <= ULTRA_HD ? 700 * MB : Math.max(700 * MB, BYTES_PER_PIXEL * width * height)
}

export const isAboveFullHd = ({ width, height }: Size): boolean => width * height > FULL_HD
