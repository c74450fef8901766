import type { MediaInfo } from '../../db/media-info.ts'
import { GIF_BUDGET_BYTES, type GifPlan, smallerGifs } from './gif-plan.ts'
import { planRenditions, toNumber } from './rendition-plan.ts'

/** Bytes per pixel of noise in every plane, the hardest content; 1.28 and 0.69 were measured. */
const MAX_PER_PIXEL = { gif: 1.5, jpg: 1 }

/** Bytes per pixel and frame of a webm at its coarsest, measured 0.13 and 0.22; `first` is the better first frame. */
const WEBM_PER_PIXEL = { opaque: 0.2, transparent: 0.4, first: 2 }

/** The mp4 has a `-maxrate` of 6 Mbit/s and a buffer of 12; a small one stays below even with noise. */
const MP4_BYTES = { perSecond: 750_000, ahead: 1_500_000 }
const MP4_PER_PIXEL = 2

/** Headers, the minimum rate of a webm with two planes, and sound at 128 and 96 kbit/s. */
const BESIDE_PICTURES = { bytes: 100_000, perSecond: 150_000 }

/**
 * Upper bound of the bytes of a source's four files. Far above most clips, because a small file can decode to film
 * grain or noise, and a lower bound would let it exceed a quota.
 */
export function mostRenditionBytes(info: MediaInfo, sourceBytes: number): number {
  const plan = planRenditions(info, { canToneMap: false, deinterlacer: 'yadif' })
  const { video, frameRate, gif, durationSeconds } = plan
  const pixels = video.width * video.height
  const frames = frameRate ? Math.ceil(durationSeconds * toNumber(frameRate.rate)) + 1 : info.frames
  const webm = pixels * (WEBM_PER_PIXEL.first + frames * WEBM_PER_PIXEL[plan.keepsAlpha ? 'transparent' : 'opaque'])
  const mp4 = Math.min(MP4_PER_PIXEL * pixels * frames, MP4_BYTES.ahead + MP4_BYTES.perSecond * durationSeconds)
  const beside = BESIDE_PICTURES.bytes + BESIDE_PICTURES.perSecond * durationSeconds
  const gifBytes = gif.from === 'rewrite' ? sourceBytes : mostGifBytes(info, gif)
  return Math.ceil(webm + mp4 + MAX_PER_PIXEL.jpg * pixels + gifBytes + beside)
}

function mostGifBytes(info: MediaInfo, gif: GifPlan & { from: 'frames' }): number {
  const ofNoise = ({ size, delayCentiseconds }: typeof gif) => {
    const frames = Math.ceil((info.durationSeconds * 100) / delayCentiseconds) + 1
    return MAX_PER_PIXEL.gif * size.width * size.height * frames
  }
  const [, last] = smallerGifs(info, gif)
  return Math.min(ofNoise(gif), Math.max(GIF_BUDGET_BYTES, ofNoise(last)))
}
