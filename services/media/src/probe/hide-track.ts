import { constants } from 'node:fs'
import { copyFile, open } from 'node:fs/promises'
import { boxesIn, elementsIn, findBox } from './declared-duration.ts'
import type { MediaType } from './sniff.ts'

/** An index of sample times for half a minute takes a few megabytes; a larger one is no clip's. */
const LARGEST_HEADER_BYTES = 16 * 1024 * 1024

/** A codec that no program knows. */
const unknownName = (length: number): Buffer => Buffer.alloc(length, 'x')

/**
 * Copies a file so that its sound track of this number has a codec that no program knows, and so none opens a decoder for it.
 * All else stays in its place. False, without a copy, where that stream is not sound.
 */
export async function copyWithoutCodec(
  source: string,
  target: string,
  track: { type: MediaType; index: number },
): Promise<boolean> {
  const header = await readHeader(source, track.type)
  const change = header && findChange(header.bytes, track)
  if (!header || !change) return false
  await copyFile(source, target, constants.COPYFILE_FICLONE)
  await using file = await open(target, 'r+')
  await file.write(change.bytes, 0, undefined, header.start + change.at)
  return true
}

interface Range {
  start: number
  end: number
}

interface Change {
  at: number
  bytes: Buffer
}

/** The `moov` of an mp4, wherever it is; the beginning of a webm. */
async function readHeader(path: string, type: MediaType): Promise<{ start: number; bytes: Buffer } | undefined> {
  await using file = await open(path)
  const { size } = await file.stat()
  const read = async (start: number, length: number) =>
    (await file.read(Buffer.alloc(Math.min(length, size - start)), 0, undefined, start)).buffer
  if (type !== 'mp4') return { start: 0, bytes: await read(0, LARGEST_HEADER_BYTES) }
  for (let start = 0; start + 16 <= size; ) {
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

const findChange = (header: Buffer, { type, index }: { type: MediaType; index: number }): Change | undefined =>
  type === 'mp4' ? changeOfTrak(header, index) : changeOfTrackEntry(header, index)

/** A sample entry of sound is this long without its boxes, in the plainest version (ISO 14496-12, 12.2.3). */
const SOUND_ENTRY_BYTES = 36

function changeOfTrak(header: Buffer, index: number): Change | undefined {
  const moov = findBox(header, { start: 0, end: header.length }, 'moov')
  const traks = moov && [...boxesIn(header, moov.start, moov.end)].filter(({ type }) => type === 'trak')
  const mdia = traks?.[index] && findBox(header, traks[index], 'mdia')
  const hdlr = mdia && findBox(header, mdia, 'hdlr')
  if (!hdlr || header.toString('latin1', hdlr.start + 8, hdlr.start + 12) !== 'soun') return undefined
  const minf = findBox(header, mdia, 'minf')
  const stbl = minf && findBox(header, minf, 'stbl')
  const stsd = stbl && findBox(header, stbl, 'stsd')
  // Version, flags and the number of entries come first.
  const [at, end] = [(stsd?.start ?? 0) + 8, stsd?.end ?? 0]
  if (!stsd || end - at < SOUND_ENTRY_BYTES || end > header.length) return undefined
  return { at, bytes: withoutCodec(header.subarray(at, end)) }
}

/** One entry for all, without the boxes, one of which may name the codec again. */
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
const SOUND = 2

function changeOfTrackEntry(header: Buffer, index: number): Change | undefined {
  const within = (range: Range | undefined, id: number) =>
    range ? [...elementsIn(header, range.start, range.end)].filter((element) => element.id === id) : []
  const [segment] = within({ start: 0, end: header.length }, SEGMENT)
  const [tracks] = within(segment, TRACKS)
  const entry = within(tracks, ENTRY)[index]
  const [type] = within(entry, TYPE)
  const [codec] = within(entry, CODEC)
  if (!type || !codec || header[type.start] !== SOUND || codec.end > header.length) return undefined
  // `A_` says that it is sound; without it ffprobe would leave out the track, and count those after it otherwise.
  return { at: codec.start + 2, bytes: unknownName(Math.max(0, codec.end - codec.start - 2)) }
}
