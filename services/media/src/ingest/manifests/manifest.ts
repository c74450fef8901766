import { outOfRange } from '../../core/edits/edit.ts'
import { apiError } from '../../errors.ts'
import { refuseDeclaredDuration } from '../../make/probe/source-limits.ts'

/** Content of a manifest: a picture and, if separate, its sound. */
export type Reading = { playlists: PictureAndSound<string> } | { tracks: PictureAndSound<Track> }

export type PictureAndSound<T> = [picture: T, sound?: T]

export interface Track {
  pieces: Piece[]
  /** Set where an edit needs only some segments: the seconds of those before the first. */
  missingSeconds?: number
}

export interface Piece {
  url: string
  /** The whole if absent. */
  range?: { offset: number; length: number }
}

export interface ManifestLimits {
  seconds: number
  pieces: number
  /** Seconds that an edit needs; absent if all. */
  span?: { from: number; to: number } | undefined
}

export interface Segment {
  piece: Piece
  seconds: number
}

/** Durations of segments are rounded, and pictures may begin a little before theirs. */
const SPAN_MARGIN_SECONDS = 0.5

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

/** The needed pieces behind their shared beginning. Adjacent ranges of one file become one request. */
export function trackOf(limits: ManifestLimits, start: Piece | undefined, all: Segment[]): Track {
  if (all.length === 0) throw refuseManifest('empty')
  const { missingSeconds, segments } = within(limits.span, all)
  if (segments.length > limits.pieces) throw refuseManifest('too_many_segments')
  const pieces: Piece[] = []
  for (const piece of start ? [start, ...segments] : segments) {
    const last = pieces.at(-1)
    const isNext = last?.range && piece.range?.offset === last.range.offset + last.range.length
    if (last?.range && piece.range && isNext && piece.url === last.url) last.range.length += piece.range.length
    else pieces.push(structuredClone(piece))
  }
  return segments.length < all.length ? { pieces, missingSeconds } : { pieces }
}

/** Throws edit_out_of_range for a span behind the last segment. */
function within(span: ManifestLimits['span'], all: Segment[]): { missingSeconds: number; segments: Piece[] } {
  if (!span) return { missingSeconds: 0, segments: all.map(({ piece }) => piece) }
  let at = 0
  let missingSeconds = 0
  const segments: Piece[] = []
  for (const { piece, seconds } of all) {
    const [begin, end] = [at, at + seconds]
    at = end
    if (end <= span.from - SPAN_MARGIN_SECONDS) missingSeconds = end
    else if (begin < span.to + SPAN_MARGIN_SECONDS) segments.push(piece)
  }
  if (segments.length === 0 || span.from >= at) throw outOfRange('start', { duration: Math.round(at * 1000) / 1000 })
  return { missingSeconds, segments }
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
