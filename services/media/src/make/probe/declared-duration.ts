// Reads the declared duration from the first bytes of a file, so that an import can end before the rest is fetched. An
// unknown duration is no refusal, because the probe measures the whole file (probe.ts).
import type { MediaType } from '../../db/media-info.ts'
import { demuxerOf } from '../../ffmpeg/hardening.ts'

/** Declared seconds of an mp4's picture or a whole webm; undefined if absent or unreadable, and for gifs. */
export function readDeclaredDuration(type: MediaType, head: Buffer): number | undefined {
  if (type === 'gif') return undefined
  const seconds = demuxerOf[type] === 'mov' ? durationOfMp4(head) : durationOfWebm(head)
  return seconds !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined
}

export interface Range {
  start: number
  end: number
}

/** An index has some dozens; walking a hostile one of a million would take a second. */
const MAX_PARTS = 10_000

/** The boxes whose headers lie between two offsets; a body may end beyond (ISO 14496-12, 4.2). */
export function* boxesIn(bytes: Buffer, { start: from, end: to }: Range): Generator<Range & { type: string }> {
  let offset = from
  for (let count = 0; count < MAX_PARTS && offset + 8 <= Math.min(to, bytes.length); count++) {
    const short = bytes.readUInt32BE(offset)
    if (short === 1 && offset + 16 > bytes.length) return
    const size = short === 1 ? Number(bytes.readBigUInt64BE(offset + 8)) : short || to - offset
    if (size < 8) return
    const type = bytes.toString('latin1', offset + 4, offset + 8)
    yield { type, start: offset + (short === 1 ? 16 : 8), end: Math.min(offset + size, to) }
    offset += size
  }
}

/** Follows a path of types, each box within the one before; undefined where one is missing. */
export const findBox = (bytes: Buffer, within: Range | undefined, ...path: string[]): Range | undefined =>
  path.reduce((outer, type) => outer && findNth(boxesIn(bytes, outer), 0, (box) => box.type === type), within)

/** The same for elements of a webm. */
export const findElement = (bytes: Buffer, within: Range | undefined, ...path: number[]): Range | undefined =>
  path.reduce((outer, id) => outer && findNth(elementsIn(bytes, outer), 0, (element) => element.id === id), within)

/** Counts from 0 and walks no further, because a header may be full of small parts. */
export function findNth<T>(parts: Iterable<T>, nth: number, matches: (part: T) => boolean): T | undefined {
  let found = -1
  for (const part of parts) if (matches(part) && ++found === nth) return part
  return undefined
}

/** Kind of a track of an mp4: `vide`, `soun` or another. */
export function kindOfTrak(bytes: Buffer, trak: Range): string | undefined {
  const hdlr = findBox(bytes, trak, 'mdia', 'hdlr')
  return hdlr && bytes.toString('latin1', hdlr.start + 8, hdlr.start + 12)
}

/** The duration of the video track after its edit list; sound may be longer. */
function durationOfMp4(bytes: Buffer): number | undefined {
  const moov = findBox(bytes, { start: 0, end: Number.MAX_SAFE_INTEGER }, 'moov')
  const mvhd = findBox(bytes, moov, 'mvhd')
  if (!moov || !mvhd) return undefined
  for (const trak of boxesIn(bytes, moov)) {
    const isVideo = trak.type === 'trak' && kindOfTrak(bytes, trak) === 'vide'
    const tkhd = isVideo ? findBox(bytes, trak, 'tkhd') : undefined
    if (!tkhd) continue
    const isLong = bytes[tkhd.start] === 1
    const scale = readNumber(bytes, mvhd.start + (bytes[mvhd.start] === 1 ? 20 : 12), 4)
    const length = readNumber(bytes, tkhd.start + (isLong ? 28 : 20), isLong ? 8 : 4)
    // All ones mean "unknown" (8.3.2.3).
    const isKnown = length !== (isLong ? 2 ** 64 : 2 ** 32 - 1)
    return scale && length && isKnown ? length / scale : undefined
  }
  return undefined
}

/** Element ids of Matroska (RFC 9559 5.1) that lead to the duration. */
const [SEGMENT, INFO, SCALE, DURATION] = [0x18538067, 0x1549a966, 0x2ad7b1, 0x4489]

function durationOfWebm(bytes: Buffer): number | undefined {
  let scale = 1_000_000
  let ticks: number | undefined
  const info = findElement(bytes, { start: 0, end: bytes.length }, SEGMENT, INFO)
  for (const { id, start, end } of info ? elementsIn(bytes, info) : []) {
    if (id === SCALE) scale = readNumber(bytes, start, end - start) || scale
    if (id === DURATION && end <= bytes.length) {
      ticks = end - start === 4 ? bytes.readFloatBE(start) : end - start === 8 ? bytes.readDoubleBE(start) : ticks
    }
  }
  return ticks === undefined ? undefined : (ticks * scale) / 1e9
}

/**
 * EBML elements have an id and a size of 1 to 8 bytes each. The leading zeros of their first byte count the bytes (RFC
 * 8794 4, 5).
 */
export function* elementsIn(bytes: Buffer, { start: from, end: to }: Range): Generator<Range & { id: number }> {
  let offset = from
  for (let count = 0; count < MAX_PARTS && offset < Math.min(to, bytes.length); count++) {
    const idLength = Math.clz32(bytes[offset] ?? 0) - 23
    const sizeAt = offset + idLength
    const sizeLength = Math.clz32(bytes[sizeAt] ?? 0) - 23
    if (idLength > 4 || sizeLength > 8 || sizeAt + sizeLength > bytes.length) return
    // The length marker is no part of the size, and 8 bytes with it would not fit into a number.
    const first = (bytes[sizeAt] ?? 0) - 2 ** (8 - sizeLength)
    const size = first * 2 ** (8 * (sizeLength - 1)) + (readNumber(bytes, sizeAt + 1, sizeLength - 1) ?? 0)
    const start = sizeAt + sizeLength
    // All ones mean "until the end", as in a recording.
    const end = size >= 2 ** (7 * sizeLength) - 1 ? to : Math.min(start + size, to)
    yield { id: readNumber(bytes, offset, idLength) ?? 0, start, end }
    offset = end
  }
}

function readNumber(bytes: Buffer, offset: number, length: number): number | undefined {
  if (length < 1 || length > 8 || offset + length > bytes.length) return undefined
  let number = 0
  for (const byte of bytes.subarray(offset, offset + length)) number = number * 256 + byte
  return number
}
