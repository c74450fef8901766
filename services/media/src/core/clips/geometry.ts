export interface Size {
  width: number
  height: number
}

/** 1080p, landscape or portrait: every screen shows it, and no setting changes cost more (720p halves it). */
const VIDEO_LONG_SIDE = 1920
const VIDEO_SHORT_SIDE = 1080

/** Size of mp4, webm and jpg: never larger than the source; even, because yuv420p halves the colour planes. */
export function fitVideo({ width, height }: Size): Size {
  const scale = Math.min(1, VIDEO_LONG_SIDE / Math.max(width, height), VIDEO_SHORT_SIDE / Math.min(width, height))
  return { width: even(width * scale), height: even(height * scale) }
}

/** Size of a GIF whose long side is at most `longSide`; never larger than the source. */
export function fitGif({ width, height }: Size, longSide: number): Size {
  const scale = Math.min(1, longSide / Math.max(width, height))
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) }
}

/** Rounds down to an even number, tolerating division errors (959.9999 is 960); encoders refuse less than 2. */
function even(length: number): number {
  return Math.max(2, 2 * Math.floor(length / 2 + 1e-6))
}
