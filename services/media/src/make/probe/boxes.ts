// Walks boxes of an mp4 and elements of a webm, within bounds that a hostile file cannot exceed.
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

export function readNumber(bytes: Buffer, offset: number, length: number): number | undefined {
  if (length < 1 || length > 8 || offset + length > bytes.length) return undefined
  let number = 0
  for (const byte of bytes.subarray(offset, offset + length)) number = number * 256 + byte
  return number
}
