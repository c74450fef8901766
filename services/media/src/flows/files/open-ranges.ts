import { Readable } from 'node:stream'
import { type BlobName, type BlobStorage, type ByteRange, SMALL_PART } from '../../store/blobs/blob-storage.ts'

export interface OpenedRange {
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

/** Sends multipart/byteranges (RFC 9110 14.6). Opens the first part before the answer begins, to find a missing file. */
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
