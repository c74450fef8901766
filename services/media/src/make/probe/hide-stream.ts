import type { MediaType } from '../../db/media-info.ts'
import { demuxerOf } from '../../ffmpeg/hardening.ts'
import { boxesIn, elementsIn, findBox, findElement, findNth, kindOfTrak, type Range } from './boxes.ts'
import { type Change, readHeader } from './edit-header.ts'

const unknownName = (length: number): Buffer => Buffer.alloc(length, 'x')

/**
 * Finds bytes to change so that the codec of a stream is unknown, all offsets kept: sound, subtitles, covers,
 * attachments, and a picture beside another. Undefined for the only picture.
 */
export async function findCodecToHide(
  path: string,
  { type, index }: { type: MediaType; index: number },
): Promise<Change | undefined> {
  const header = await readHeader(path, type)
  const change = header && (demuxerOf[type] === 'mov' ? changeOfTrak : changeOfTrackEntry)(header.bytes, index)
  return change && { at: header.start + change.at, bytes: change.bytes }
}

/** Lengths of sample entries without their boxes, in the plainest version (ISO 14496-12, 8.5.2, 12.1.3 and 12.2.3). */
const ENTRY_BYTES: Record<string, number> = { soun: 36, vide: 86, pict: 86 }
const PLAIN_ENTRY_BYTES = 16

function changeOfTrak(header: Buffer, index: number): Change | undefined {
  const moov = findBox(header, { start: 0, end: header.length }, 'moov')
  const stream = moov && findNth(streamsIn(header, moov), index, () => true)
  if (!moov || !stream) return undefined
  if (stream.type === 'covr') return { at: stream.start - 4, bytes: Buffer.from('free') }
  const kind = kindOfTrak(header, stream) ?? ''
  const isPicture = (box: Box) => box.type === 'trak' && ['vide', 'pict'].includes(kindOfTrak(header, box) ?? '')
  if (isPicture(stream) && !findNth(boxesIn(header, moov), 1, isPicture)) return undefined
  const stsd = findBox(header, stream, 'mdia', 'minf', 'stbl', 'stsd')
  // Behind version, flags and the number of entries.
  const [at, end] = [(stsd?.start ?? 0) + 8, stsd?.end ?? 0]
  const length = ENTRY_BYTES[kind] ?? PLAIN_ENTRY_BYTES
  if (!stsd || end - at < length || end > header.length) return undefined
  return { at, bytes: withoutCodec(header.subarray(at, end), kind, length) }
}

/** Tracks, and a cover for each of its pictures, in the order in which ffmpeg counts them. */
function* streamsIn(header: Buffer, moov: Range): Generator<Box> {
  for (const box of boxesIn(header, moov)) {
    if (box.type === 'trak') yield box
    const meta = box.type === 'udta' ? findBox(header, box, 'meta') : undefined
    // Behind version and flags.
    const covr = meta && findBox(header, { ...meta, start: meta.start + 4 }, 'ilst', 'covr')
    for (const { type } of covr ? boxesIn(header, covr) : [])
      if (type === 'data') yield { ...covr, type: 'covr' } as Box
  }
}

type Box = { type: string } & Range

/** One entry in place of all, without their boxes, one of which may name the codec again. */
function withoutCodec(entries: Buffer, kind: string, length: number): Buffer {
  const entry = Buffer.from(entries)
  entry.writeUInt32BE(entry.length, 0)
  unknownName(4).copy(entry, 4)
  // The version, which other entries do not have.
  if (kind === 'soun') entry.writeUInt16BE(0, 16)
  if (entry.length < length + 8) return entry
  entry.writeUInt32BE(entry.length - length, length)
  entry.write('free', length + 4, 'latin1')
  return entry
}

/** Element ids of Matroska (RFC 9559, 5.1) that lead to the codec of a track. */
const [SEGMENT, TRACKS, ENTRY, TYPE, CODEC] = [0x18538067, 0x1654ae6b, 0xae, 0x83, 0x86]
const [ATTACHMENTS, FILE, MIME] = [0x1941a469, 0x61a7, 0x4660]
/** Type of a track of pictures (RFC 9559, 5.1.4.1.3). */
const PICTURES = 1

function changeOfTrackEntry(header: Buffer, index: number): Change | undefined {
  const whole = { start: 0, end: header.length }
  const tracks = findElement(header, whole, SEGMENT, TRACKS)
  const isEntry = ({ id }: { id: number }) => id === ENTRY
  const entry = tracks && findNth(elementsIn(header, tracks), index, isEntry)
  if (tracks && !entry) return changeOfFile(header, index - count(elementsIn(header, tracks), isEntry))
  const [type, codec] = [findElement(header, entry, TYPE), findElement(header, entry, CODEC)]
  if (!tracks || !type || !codec || codec.end > header.length) return undefined
  const isPicture = (element: { id: number } & Range) =>
    isEntry(element) && header[findElement(header, element, TYPE)?.start ?? header.length] === PICTURES
  const isOnly = header[type.start] === PICTURES && !findNth(elementsIn(header, tracks), 1, isPicture)
  // `V_`, `A_` and `S_` mark the kind; without it ffprobe would skip the track and renumber the others.
  return isOnly ? undefined : { at: codec.start + 2, bytes: unknownName(Math.max(0, codec.end - codec.start - 2)) }
}

/** An attached picture is a stream by its type of file. */
function changeOfFile(header: Buffer, index: number): Change | undefined {
  const files = findElement(header, { start: 0, end: header.length }, SEGMENT, ATTACHMENTS)
  const file = files && findNth(elementsIn(header, files), index, ({ id }) => id === FILE)
  const mime = findElement(header, file, MIME)
  if (!mime || mime.end > header.length) return undefined
  return { at: mime.start, bytes: unknownName(mime.end - mime.start) }
}

const count = <T>(parts: Iterable<T>, matches: (part: T) => boolean): number =>
  [...parts].reduce((sum, part) => sum + (matches(part) ? 1 : 0), 0)
