import { type ByteRange, type HlsManifest, type HlsSegment, Parser } from 'm3u8-parser'
import {
  chooseBest,
  type ManifestLimits,
  mayHoldPicture,
  type PictureAndSound,
  type Piece,
  type Reading,
  refuseLongTrack,
  refuseManifest,
  type Track,
  trackOf,
} from './manifest.ts'

/**
 * A playlist of RFC 8216: a master is a choice among others, a media playlist lists segments. Throws
 * unsupported_site_content with its reason, duration_exceeded. Only where a parser that hangs hangs nobody else.
 */
export function readHls(text: string, url: string, limits: ManifestLimits): Reading {
  if (!/^\uFEFF?#EXTM3U/.test(text)) throw refuseManifest('unreadable', 'not a playlist')
  // On the text, because of the many kinds the parser understands only some.
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
  // Without an address of its own the sound is in the variant.
  const sound = (sounds.find((one) => one.default) ?? sounds[0])?.uri
  return sound ? [absolute(best.uri, base), absolute(sound, base)] : [absolute(best.uri, base)]
}

function readMediaPlaylist({ segments, endList }: HlsManifest, base: string, limits: ManifestLimits): Track {
  refuseLongTrack(
    limits,
    segments.reduce((total, { duration }) => total + duration, 0),
  )
  if (segments.length > 0 && !endList) throw refuseManifest('live')
  const [start, ...others] = new Set(segments.map(({ map }) => JSON.stringify(map ?? null)))
  // What follows has clocks, and perhaps codecs, of its own: an advertisement, mostly.
  if (others.length > 0 || segments.slice(1).some(({ discontinuity }) => discontinuity)) {
    throw refuseManifest('discontinuous')
  }
  const map = JSON.parse(start ?? 'null') as HlsSegment['map'] | null
  return trackOf(
    limits,
    map ? pieceOf(map, base) : undefined,
    segments.map((segment) => pieceOf(segment, base)),
  )
}

const pieceOf = ({ uri, byterange }: { uri: string; byterange?: ByteRange }, base: string): Piece => ({
  url: absolute(uri, base),
  ...(byterange && { range: { offset: byterange.offset, length: byterange.length } }),
})

/** What is no address stays what it is, for the guard to refuse. */
const absolute = (uri: string, base: string): string => URL.parse(uri, base)?.href ?? uri
