import { type HlsManifest, type HlsSegment, Parser } from 'm3u8-parser'
import {
  chooseBest,
  type ManifestLimits,
  mayHoldPicture,
  type PictureAndSound,
  type Piece,
  type Reading,
  refuseLongTrack,
  refuseManifest,
  secondsOf,
  type Track,
  trackOf,
} from './manifest.ts'

/**
 * Reads a playlist (RFC 8216): a master lists playlists, a media playlist lists segments. Throws duration_exceeded, or
 * unsupported_site_content with a reason. Runs only in manifest-reader.ts, because it may hang.
 */
export function readHls(text: string, url: string, limits: ManifestLimits): Reading {
  if (!/^\uFEFF?#EXTM3U/.test(text)) throw refuseManifest('unreadable', 'not a playlist')
  // Checked in the text, because the parser knows only some kinds of keys.
  if (/^#EXT-X-(SESSION-)?KEY:(?!\s*METHOD=NONE\b)/m.test(text)) throw refuseManifest('encrypted')
  const parser = new Parser()
  parser.push(text)
  parser.end()
  const { manifest } = parser
  if (manifest.playlists?.length) return { playlists: choosePlaylists(manifest, url) }
  return { tracks: [readMediaPlaylist(manifest, url, limits)] }
}

function choosePlaylists({ playlists = [], mediaGroups }: HlsManifest, base: string): PictureAndSound<string> {
  const offers = playlists.map(({ uri, attributes }) => ({
    ...{ uri, group: attributes.AUDIO, bandwidth: attributes.BANDWIDTH, codecs: attributes.CODECS },
    ...attributes.RESOLUTION,
  }))
  const best = chooseBest(offers.filter(mayHoldPicture))
  if (!best) throw refuseManifest('empty', 'no variant with a picture')
  const sounds = Object.values(mediaGroups?.AUDIO[best.group ?? ''] ?? {})
  // Sound without an address is part of the variant.
  const sound = (sounds.find((one) => one.default) ?? sounds[0])?.uri
  return sound ? [absolute(best.uri, base), absolute(sound, base)] : [absolute(best.uri, base)]
}

function readMediaPlaylist({ segments, endList }: HlsManifest, base: string, limits: ManifestLimits): Track {
  refuseLongTrack(limits, secondsOf(segments))
  if (segments.length > 0 && !endList) throw refuseManifest('live')
  const [start, ...others] = new Set(segments.map(({ map }) => JSON.stringify(map ?? null)))
  // The part after it, mostly an advertisement, has other clocks and perhaps other codecs.
  if (others.length > 0 || segments.slice(1).some(({ discontinuity }) => discontinuity)) {
    throw refuseManifest('discontinuous')
  }
  const map = JSON.parse(start ?? 'null') as HlsSegment['map'] | null
  const pieces = segments.map((segment) => ({ piece: pieceOf(segment, base), seconds: segment.duration ?? 0 }))
  return trackOf(limits, map ? pieceOf(map, base) : undefined, pieces)
}

const pieceOf = ({ uri, byterange: range }: Pick<HlsSegment, 'uri' | 'byterange'>, base: string): Piece => ({
  url: absolute(uri, base),
  range,
})

/** Returns an invalid address unchanged, for the guard to refuse. */
const absolute = (uri: string, base: string): string => URL.parse(uri, base)?.href ?? uri
