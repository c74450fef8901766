import { fitGif, type Size } from '../../core/clips/geometry.ts'
import { isAnimation, type MediaInfo } from '../../db/media-info.ts'

export type GifPlan =
  | { from: 'rewrite' }
  /** `loopCount` as in the source: 0 means forever, null plays once. */
  | { from: 'frames'; size: Size; delayCentiseconds: number; loopCount: number | null }

const ROUNDED_CENTISECONDS = 0.1

/** Longer clips get fewer frames a second (16.7, 12.5 or 10), because they determine the size of a GIF. */
export function slowestGifDelay(durationSeconds: number): number {
  if (durationSeconds <= 10) return 6
  return durationSeconds <= 20 ? 8 : 10
}

/** Plans a GIF with the shortest delay from `minDelay` (cs) that is no faster than the source, but for rounding. */
export function planGif(info: MediaInfo, longSide: number, minDelay: number): GifPlan & { from: 'frames' } {
  const finestFps = isAnimation(info) ? 100 / info.tickCentiseconds : Math.max(info.fps, info.baseFps)
  const sourceDelay = Math.ceil(100 / finestFps - ROUNDED_CENTISECONDS)
  return {
    from: 'frames',
    size: fitGif(info, longSide),
    delayCentiseconds: Math.max(minDelay, sourceDelay),
    loopCount: info.loopCount === undefined ? 0 : info.loopCount,
  }
}

/** A larger GIF is made again from the mp4, smaller and slower (contract/media.md 5.5). The last one is kept. */
export const GIF_BUDGET_BYTES = 8_000_000

export const smallerGifs = (info: MediaInfo, { delayCentiseconds }: { delayCentiseconds: number }) =>
  [planGif(info, 400, Math.max(delayCentiseconds, 8)), planGif(info, 320, Math.max(delayCentiseconds, 10))] as const
