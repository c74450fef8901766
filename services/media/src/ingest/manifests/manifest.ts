import { apiError } from '../../errors.ts'
import { refuseDeclaredDuration } from '../../make/probe/limits.ts'

/** Content of a manifest: a picture and, if separate, its sound. */
export type Reading = { playlists: PictureAndSound<string> } | { tracks: PictureAndSound<Track> }

export type PictureAndSound<T> = [picture: T, sound?: T]

export interface Track {
  pieces: Piece[]
}

export interface Piece {
  url: string
  /** The whole if absent. */
  range?: { offset: number; length: number }
}

export interface ManifestLimits {
  seconds: number
  pieces: number
}

/** Public reason (`details.reason`) why a readable manifest is refused. */
type Reason =
  | 'empty'
  | 'live'
  | 'encrypted'
  | 'discontinuous'
  | 'nested'
  | 'too_many_segments'
  | 'too_large'
  | 'unreadable'

export const refuseManifest = (reason: Reason, cause?: unknown) =>
  apiError('unsupported_site_content', { details: { reason }, cause })

/** Throws duration_exceeded before any piece is fetched. The last segment counts whole. */
export const refuseLongTrack = ({ seconds: durationSeconds }: ManifestLimits, seconds: number): void =>
  refuseDeclaredDuration({ durationSeconds }, seconds)

export const secondsOf = (segments: readonly { duration?: number }[]): number =>
  segments.reduce((total, { duration = 0 }) => total + duration, 0)

/** The pieces behind their shared beginning. Adjacent ranges of one file become one request. */
export function trackOf(limits: ManifestLimits, start: Piece | undefined, segments: Piece[]): Track {
  if (segments.length === 0) throw refuseManifest('empty')
  if (segments.length > limits.pieces) throw refuseManifest('too_many_segments')
  const pieces: Piece[] = []
  for (const piece of start ? [start, ...segments] : segments) {
    const last = pieces.at(-1)
    const isNext = last?.range && piece.range?.offset === last.range.offset + last.range.length
    if (last?.range && piece.range && isNext && piece.url === last.url) last.range.length += piece.range.length
    else pieces.push(structuredClone(piece))
  }
  return { pieces }
}

export interface Offer {
  width?: number | undefined
  height?: number | undefined
  bandwidth?: number | undefined
  codecs?: string | undefined
}

/** Larger pictures are scaled down in any case. */
const LARGEST_SHORT_SIDE = 1080

/** The largest picture up to 1080p in either orientation, at its highest rate; else the smallest above. */
export function chooseBest<T extends Offer>(offers: readonly T[]): T | undefined {
  const side = ({ width, height }: T) => Math.min(width ?? 0, height ?? 0)
  const byQuality = offers.toSorted((a, b) => side(b) - side(a) || (b.bandwidth ?? 0) - (a.bandwidth ?? 0))
  return byQuality.find((offer) => side(offer) <= LARGEST_SHORT_SIDE) ?? byQuality.at(-1)
}

/** Codecs that our ffmpeg may decode. Dolby Vision and the like have an ordinary variant beside them. */
const PICTURE_CODECS = /^(avc[13]|hvc1|hev1|vp0?[89]|av01|mp4v)\b/i

/** An undeclared codec is not refused here; the probe finds out. */
export function mayHoldPicture({ codecs, width }: Offer): boolean {
  if (codecs) return codecs.split(',').some((codec) => PICTURE_CODECS.test(codec.trim()))
  return width !== 0
}
