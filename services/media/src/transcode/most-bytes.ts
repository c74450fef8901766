import type { MediaInfo } from '../probe/media-info.ts'
import { LARGEST_FILE_BYTES, planRenditions } from './rendition-plan.ts'

/**
 * Bytes per pixel of noise in every plane, the hardest thing to encode: 0.99, 1.28 and 0.69 were measured. The webm has more in
 * hand, for a plane of transparency.
 */
const MOST_PER_PIXEL = { webm: 2, gif: 1.5, jpg: 1 }

/** The mp4 has a `-maxrate` of 6 Mbit/s and a buffer of 12; a small one of noise stays below. */
const MP4_BYTES = { perSecond: 750_000, ahead: 1_500_000 }

/** Headers, and sound at 128 and 96 kbit/s. */
const BESIDE_PICTURES = { bytes: 100_000, perSecond: 60_000 }

/**
 * The bytes that the four files of a source take at most. Far more than most clips need: whoever counts on less can be made to
 * keep more, by film grain or noise that is computed while a small file is decoded.
 */
export function mostRenditionBytes(info: MediaInfo, sourceBytes: number): number {
  const { video, frameRate, gif, durationSeconds } = planRenditions(info, { canToneMap: false, deinterlacer: 'yadif' })
  const pixels = video.width * video.height
  const frames = frameRate ? Math.ceil(durationSeconds * toNumber(frameRate.rate)) + 1 : info.frames
  const webm = Math.min(MOST_PER_PIXEL.webm * pixels * frames, LARGEST_FILE_BYTES)
  const mp4 = Math.min(webm, MP4_BYTES.ahead + MP4_BYTES.perSecond * durationSeconds)
  const beside = BESIDE_PICTURES.bytes + BESIDE_PICTURES.perSecond * durationSeconds
  const gifBytes = gif.from === 'rewrite' ? sourceBytes : noisyGif(gif, durationSeconds)
  return Math.ceil(webm + mp4 + MOST_PER_PIXEL.jpg * pixels + gifBytes + beside)
}

function noisyGif(
  { size, delayCentiseconds }: { size: { width: number; height: number }; delayCentiseconds: number },
  durationSeconds: number,
): number {
  const frames = Math.ceil((durationSeconds * 100) / delayCentiseconds) + 1
  return MOST_PER_PIXEL.gif * size.width * size.height * frames
}

/** A rate as ffmpeg reads it: `30`, or `100/3`. */
function toNumber(rate: string): number {
  const [frames, seconds = '1'] = rate.split('/')
  return Number(frames) / Number(seconds)
}
