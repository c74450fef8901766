import { Readable } from 'node:stream'
import { type BlobName, type BlobStorage, type ByteRange, SMALL_PART } from '../../store/blobs/blob-storage.ts'

/** Each part costs a read; players and resumed downloads ask for two or three. */
const MAX_RANGES = 16

/** Gap in bytes that costs less to send than the header of another part (RFC 9110 15.3.7.2). */
const SMALL_GAP = 128

/**
 * Parses a `Range` header (RFC 9110 section 14). The parts are in the order of the file and disjoint, so together they
 * never exceed it. Undefined means the whole file, even for a malformed header or too many ranges.
 */
export function parseRanges(header: string | undefined, bytes: number): ByteRange[] | 'unsatisfiable' | undefined {
  const list = /^bytes=(.*)$/i.exec(header ?? '')?.[1]?.split(',') ?? []
  const specs = list.map((spec) => spec.trim()).filter(Boolean)
  if (specs.length === 0 || specs.length > MAX_RANGES) return undefined
  const ranges = specs.map((spec) => parseRange(spec, bytes))
  if (ranges.includes('invalid')) return undefined
  const satisfiable = ranges.filter((range) => typeof range === 'object')
  return satisfiable.length === 0 ? 'unsatisfiable' : joinNear(satisfiable)
}

function parseRange(spec: string, bytes: number): ByteRange | 'unsatisfiable' | 'invalid' {
  const [, first, last] = /^(\d*)\s*-\s*(\d*)$/.exec(spec) ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return 'invalid'
  if (first === '') {
    const length = Math.min(Number(last), bytes)
    return length === 0 ? 'unsatisfiable' : { start: bytes - length, end: bytes - 1 }
  }
  const start = Number(first)
  const end = last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1)
  if (last !== '' && Number(last) < start) return 'invalid'
  return start >= bytes ? 'unsatisfiable' : { start, end }
}

function joinNear(ranges: readonly ByteRange[]): ByteRange[] {
  const joined: ByteRange[] = []
  for (const range of ranges.toSorted((a, b) => a.start - b.start)) {
    const before = joined.at(-1)
    if (before && range.start <= before.end + SMALL_GAP) before.end = Math.max(before.end, range.end)
    else joined.push({ ...range })
  }
  return joined
}

interface OpenedRange {
  body: Readable | Buffer
  length: number
}

/** Returns undefined when the file is not in the store. Throws for a file that is too short. */
export async function openRange(
  blobs: BlobStorage,
  name: BlobName,
  range: ByteRange,
): Promise<OpenedRange | undefined> {
  const length = range.end - range.start + 1
  const read = (length <= SMALL_PART && blobs.readPart) || blobs.open
  const body = await read(name, range)
  return body && { body, length }
}

/**
 * Sends multipart/byteranges (RFC 9110 14.6). Opens the first part before the answer begins, to find a missing file.
 */
export async function openRanges(
  blobs: BlobStorage,
  name: BlobName,
  { ranges, bytes, type, boundary }: { ranges: readonly ByteRange[]; bytes: number; type: string; boundary: string },
): Promise<OpenedRange | undefined> {
  const [firstRange, ...others] = ranges
  const first = firstRange && (await openRange(blobs, name, firstRange))
  if (!first) return undefined
  const heads = ranges.map(({ start, end }) =>
    Buffer.from(`\r\n--${boundary}\r\ncontent-type: ${type}\r\ncontent-range: bytes ${start}-${end}/${bytes}\r\n\r\n`),
  )
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  async function* write() {
    for (const [index, head] of heads.entries()) {
      yield head
      const range = others[index - 1]
      const part = range ? await openRange(blobs, name, range) : first
      if (!part) throw new Error('stored file was deleted while it was read')
      if (Buffer.isBuffer(part.body)) yield part.body
      else yield* part.body
    }
    yield tail
  }
  const length = [...heads, tail].reduce((sum, { length }) => sum + length, 0)
  const body = Readable.from(write(), { objectMode: false })
  // If the client disconnects before the first byte, the generator has not begun and would not close the file.
  body.once('close', () => Buffer.isBuffer(first.body) || first.body.destroy())
  return { body, length: length + ranges.reduce((sum, { start, end }) => sum + end - start + 1, 0) }
}
