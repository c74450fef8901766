import type { Size } from '../../core/clips/geometry.ts'
import type { Area } from '../plan/unsure-pixels.ts'

/** Size of the smallest screen around an image. */
export const screenAround = ({ left, top, width, height }: Area): Size => ({
  width: left + width,
  height: top + height,
})

export function extend(size: Size, ...others: Size[]): void {
  size.width = Math.max(size.width, ...others.map(({ width }) => width))
  size.height = Math.max(size.height, ...others.map(({ height }) => height))
}

/** True if no pixel can show, whatever the size: browsers cut frames at the picture. */
export const isOutside = ({ left, top }: Area, picture: Size): boolean => left >= picture.width || top >= picture.height

/** Browsers, and ffmpeg's demuxer, show frames with a delay of 0 or 1 cs for 10 cs. */
export const SHORTEST_DELAY_CENTISECONDS = 2
const DEFAULT_DELAY_CENTISECONDS = 10

export const shownDelay = (centiseconds: number): number =>
  centiseconds < SHORTEST_DELAY_CENTISECONDS ? DEFAULT_DELAY_CENTISECONDS : centiseconds
