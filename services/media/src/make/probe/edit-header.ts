// Reads the header of a file, and changes bytes of it in place.
import { open } from 'node:fs/promises'
import type { MediaType } from '../../db/media-info.ts'
import { demuxerOf } from '../../ffmpeg/hardening.ts'

/** The index of 30 s takes some 100 KB, its cover picture a few MB. Parsing a larger one would delay other requests. */
const LARGEST_HEADER_BYTES = 8 * 1024 ** 2
/** The tracks of a webm precede its pictures. */
const WEBM_HEADER_BYTES = 1024 ** 2
/** Boxes before the index; walking a file of small ones would take minutes. */
const MAX_BOXES = 1000

export interface Change {
  at: number
  bytes: Buffer
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
