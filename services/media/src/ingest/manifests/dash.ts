import { type DashRepresentation, type DashSegment, inheritAttributes, stringToMpdXml, toPlaylists } from 'mpd-parser'
import {
  chooseBest,
  type ManifestLimits,
  mayHoldPicture,
  type Piece,
  type Reading,
  refuseLongTrack,
  refuseManifest,
  secondsOf,
  type Track,
  trackOf,
} from './manifest.ts'

/**
 * Reads an MPD (ISO 23009-1) of one period. Throws unsupported_site_content with its reason, duration_exceeded. Runs
 * only in manifest-reader.ts, because a template of nanoseconds is a billion segments.
 */
export function readDash(text: string, url: string, limits: ManifestLimits): Reading {
  const { representationInfo: all } = inheritAttributes(stringToMpdXml(text), { manifestUri: url })
  if (all.some(({ attributes }) => attributes.type === 'dynamic')) throw refuseManifest('live')
  for (const { attributes } of all) refuseLongTrack(limits, attributes.sourceDuration ?? 0)
  if (new Set(all.map(({ attributes }) => attributes.periodStart)).size > 1) throw refuseManifest('discontinuous')

  const pictures = all.filter((one) => isOf('video', one) && mayHoldPicture(one.attributes))
  const picture = chooseRepresentation(preferContainer('mp4', pictures))
  if (!picture) throw refuseManifest('empty', 'no picture')
  const sounds = all.filter((one) => isOf('audio', one))
  const sound = chooseRepresentation(preferContainer(containerOf(picture), sounds))
  const tracks = [picture, sound].filter((one) => one !== undefined)
  if (tracks.some(({ attributes }) => attributes.contentProtection)) throw refuseManifest('encrypted')
  const [pictureTrack, soundTrack] = tracks.map((one) => trackOfRepresentation(one, limits)) as [Track, Track?]
  return { tracks: soundTrack ? [pictureTrack, soundTrack] : [pictureTrack] }
}

const isOf = (type: 'video' | 'audio', { attributes }: DashRepresentation) =>
  (attributes.mimeType ?? attributes.contentType ?? '').split('/')[0] === type

const chooseRepresentation = (all: DashRepresentation[]) =>
  chooseBest(all.map((one) => ({ ...one.attributes, one })))?.one

const containerOf = ({ attributes: { mimeType } }: DashRepresentation) => mimeType?.split('/')[1]

/** Picture and sound of different containers fit into neither. */
function preferContainer(container: string | undefined, all: DashRepresentation[]): DashRepresentation[] {
  const preferred = all.filter((one) => containerOf(one) === container)
  return preferred.length > 0 ? preferred : all
}

function trackOfRepresentation(representation: DashRepresentation, limits: ManifestLimits): Track {
  const [playlist] = toPlaylists([representation])
  // A file with an index is complete and short, so it is fetched whole.
  if (playlist?.sidx) return trackOf(limits, undefined, [wholeFile(playlist.sidx.resolvedUri)])
  const segments = playlist?.segments
  if (!segments) return trackOf(limits, undefined, [wholeFile(representation.attributes.baseUrl)])
  refuseLongTrack(limits, secondsOf(segments))
  const map = segments[0]?.map
  const isInFront = map && (map.byterange || map.resolvedUri !== segments[0]?.resolvedUri)
  const pieces = segments.map((segment) => ({ piece: pieceOf(segment), seconds: segment.duration ?? 0 }))
  return trackOf(limits, isInFront ? pieceOf(map) : undefined, pieces)
}

const wholeFile = (url: string) => ({ piece: { url }, seconds: Number.POSITIVE_INFINITY })

const pieceOf = ({ resolvedUri, byterange }: DashSegment): Piece => ({
  url: resolvedUri,
  range: byterange && { offset: Number(byterange.offset), length: Number(byterange.length) },
})
