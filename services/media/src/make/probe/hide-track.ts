import { open } from 'node:fs/promises'
import type { MediaType } from '../../db/media-info.ts'
import { demuxerOf } from '../../ffmpeg/hardening.ts'
import { boxesIn, elementsIn, findBox, findElement, findNth, kindOfTrak } from './declared-duration.ts'

/** The index of 30 s takes some 100 KB, its cover picture a few MB. Parsing a larger one would delay other requests. */
const LARGEST_HEADER_BYTES = 8 * 1024 ** 2
/** The tracks of a webm precede its pictures. */
const WEBM_HEADER_BYTES = 1024 ** 2
/** Boxes before the index; walking a file of small ones would take minutes. */
const MAX_BOXES = 1000

const unknownName = (length: number): Buffer => Buffer.alloc(length, 'x')

export interface Change {
  at: number
  bytes: Buffer
}

/**
 * Finds bytes to change so that the codec of a sound track, or of subtitles in Matroska, is unknown, all offsets kept. Undefined
 * for any other track.
 */
export async function findCodecToHide(
  path: string,
  { type, index }: { type: MediaType; index: number },
): Promise<Change | undefined> {
  const header = await readHeader(path, type)
  const change = header && (demuxerOf[type] === 'mov' ? changeOfTrak : changeOfTrackEntry)(header.bytes, index)
  return change && { at: header.start + change.at, bytes: change.bytes }
}

export async function writeChange(path: string, { at, bytes }: Change): Promise<void> {
  await using file = await open(path, 'r+')
  await file.write(bytes, 0, undefined, at)
}

/** The `moov` of an mp4, wherever it is; the beginning of a webm. */
export async function readHeader(path: string, type: MediaType): Promise<{ start: number; bytes: Buffer } | undefined> {
  await using file = await open(path)
  const { size } = await file.stat()
  const read = async (start: number, length: number) =>
    (await file.read(Buffer.alloc(Math.min(length, size - start)), 0, undefined, start)).buffer
  if (demuxerOf[type] !== 'mov') return { start: 0, bytes: await read(0, WEBM_HEADER_BYTES) }
  for (let start = 0, boxes = 0; start + 16 <= size && boxes < MAX_BOXES; boxes++) {
    const head = await read(start, 16)
    const short = head.readUInt32BE(0)
    const length = short === 1 ? Number(head.readBigUInt64BE(8)) : short || size - start
    if (length < 8) return undefined
    if (head.toString('latin1', 4, 8) === 'moov') {
      return length > LARGEST_HEADER_BYTES ? undefined : { start, bytes: await read(start, length) }
    }
    start += length
  }
  return undefined
}

/** Length of a sound sample entry without its boxes, in its plainest version (ISO 14496-12, 12.2.3). */
const SOUND_ENTRY_BYTES = 36

function changeOfTrak(header: Buffer, index: number): Change | undefined {
  const moov = findBox(header, { start: 0, end: header.length }, 'moov')
  const trak = moov && findNth(boxesIn(header, moov), index, ({ type }) => type === 'trak')
  if (!trak || kindOfTrak(header, trak) !== 'soun') return undefined
  const stsd = findBox(header, trak, 'mdia', 'minf', 'stbl', 'stsd')
  // Behind version, flags and the number of entries.
  const [at, end] = [(stsd?.start ?? 0) + 8, stsd?.end ?? 0]
  if (!stsd || end - at < SOUND_ENTRY_BYTES || end > header.length) return undefined
  return { at, bytes: withoutCodec(header.subarray(at, end)) }
}

/** One entry in place of all, without their boxes, one of which may name the codec again. */
function withoutCodec(entries: Buffer): Buffer {
  const entry = Buffer.from(entries)
  entry.writeUInt32BE(entry.length, 0)
  unknownName(4).copy(entry, 4)
  entry.writeUInt16BE(0, 16)
  if (entry.length < SOUND_ENTRY_BYTES + 8) return entry
  entry.writeUInt32BE(entry.length - SOUND_ENTRY_BYTES, SOUND_ENTRY_BYTES)
  entry.write('free', SOUND_ENTRY_BYTES + 4, 'latin1')
  return entry
}

/** Element ids of Matroska (RFC 9559, 5.1) that lead to the codec of a track. */
const [SEGMENT, TRACKS, ENTRY, TYPE, CODEC] = [0x18538067, 0x1654ae6b, 0xae, 0x83, 0x86]
/** Types of the tracks that may be hidden (RFC 9559, 5.1.4.1.3): sound and subtitles. */
const HIDDEN = [2, 17]

function changeOfTrackEntry(header: Buffer, index: number): Change | undefined {
  const tracks = findElement(header, { start: 0, end: header.length }, SEGMENT, TRACKS)
  const entry = tracks && findNth(elementsIn(header, tracks), index, ({ id }) => id === ENTRY)
  const [type, codec] = [findElement(header, entry, TYPE), findElement(header, entry, CODEC)]
  if (!type || !codec || !HIDDEN.includes(header[type.start] ?? 0) || codec.end > header.length) return undefined
  // `A_` marks sound and `S_` subtitles; without it ffprobe would skip the track and renumber the others.
  return { at: codec.start + 2, bytes: unknownName(Math.max(0, codec.end - codec.start - 2)) }
}
