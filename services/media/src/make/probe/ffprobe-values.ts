// Values of ffprobe's report, which are texts.
import type { FfprobeStream } from './ffprobe.ts'

export const readTag = ({ tags = {} }: FfprobeStream, name: string): string | undefined =>
  tags[name] ?? tags[name.toUpperCase()] ?? tags[name.toLowerCase()]

/** ffprobe's precision, without the error of subtraction. */
export const toMicroseconds = (value: number): number => Math.round(value * 1e6) / 1e6

export function seconds(text: string | undefined, fallback: number): number {
  const value = Number.parseFloat(text ?? '')
  return Number.isFinite(value) ? value : fallback
}

/** `30000/1001` or `16:11`; 0 when undefined, which ffprobe writes as `0/0` or `0:1`. */
export function readRatio(text: string | undefined): number {
  const [numerator, denominator] = (text ?? '').split(/[/:]/).map(Number)
  const ratio = (numerator ?? 0) / (denominator ?? 0)
  return Number.isFinite(ratio) ? ratio : 0
}

/** `00:00:02.000000000`, the form of Matroska's DURATION tag. */
export function readClock(text: string | undefined): number {
  const parts = (text ?? '').split(':').map(Number)
  const value = parts.reduce((total, part) => total * 60 + part, 0)
  return parts.length === 3 && Number.isFinite(value) ? value : 0
}
