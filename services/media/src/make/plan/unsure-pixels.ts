import type { Size } from '../../core/clips/geometry.ts'

export interface Area extends Size {
  left: number
  top: number
}

/** A frame as it is laid on the canvas. */
export interface LaidFrame extends Area {
  /** True if each of its pixels has a color. */
  isOpaque: boolean
  /** True if its transparent pixels clear what was there. */
  clears: boolean
  /** Treatment of its place before the next frame. */
  after: 'kept' | 'cleared' | 'restored'
}

/** Place and number of the frames in which a transparent pixel may show. */
export interface UnsurePixels {
  area: Area
  frames: number
}

/**
 * Says by the places of frames alone where a decoder must look for transparent pixels: `certain` if some certainly
 * show, null if none can. Most GIFs need their first frame only, since later ones leave out pixels that stay.
 */
export function findUnsurePixels(canvas: Size, frames: Iterable<LaidFrame>): UnsurePixels | 'certain' | null {
  const whole = { left: 0, top: 0, ...canvas }
  let area: Area | undefined
  let last = 0
  /** True if the canvas may have transparent pixels that no frame so far has shown. */
  let mayBeNew = true
  /** All transparent pixels are inside `maybe`; all pixels of `surely` are transparent. */
  let [maybe, surely]: (Area | undefined)[] = [whole, whole]
  let count = 0
  for (const frame of frames) {
    count++
    const before = [maybe, surely] as const
    const place = inside(frame, whole)
    if (surely && !(place && isInside(surely, place))) return 'certain'
    if (frame.isOpaque && maybe && place && isInside(maybe, place)) maybe = undefined
    if (frame.clears && !frame.isOpaque) maybe = around(maybe, place)
    // A frame that only adds colors has no transparent pixel that the one before had not.
    if (maybe && (mayBeNew || frame.clears)) [area, last] = [around(area, maybe), count]
    mayBeNew = frame.after === 'cleared' || (frame.after === 'restored' && mayBeNew)
    surely = undefined
    if (frame.after === 'cleared') [maybe, surely] = [around(maybe, place), place]
    if (frame.after === 'restored') [maybe, surely] = before
  }
  return area ? { area, frames: last } : null
}

function inside({ left, top, width, height }: Area, whole: Area): Area | undefined {
  const [right, bottom] = [Math.min(left + width, whole.width), Math.min(top + height, whole.height)]
  return right > left && bottom > top ? { left, top, width: right - left, height: bottom - top } : undefined
}

const isInside = (inner: Area, outer: Area): boolean =>
  inner.left >= outer.left &&
  inner.top >= outer.top &&
  inner.left + inner.width <= outer.left + outer.width &&
  inner.top + inner.height <= outer.top + outer.height

function around(one: Area | undefined, other: Area | undefined): Area | undefined {
  if (!one || !other) return one ?? other
  const [left, top] = [Math.min(one.left, other.left), Math.min(one.top, other.top)]
  const right = Math.max(one.left + one.width, other.left + other.width)
  const bottom = Math.max(one.top + one.height, other.top + other.height)
  return { left, top, width: right - left, height: bottom - top }
}
