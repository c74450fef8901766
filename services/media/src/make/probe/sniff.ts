import { open } from 'node:fs/promises'
import { fileTypeFromBuffer } from 'file-type'
import type { MediaType } from '../../db/media-info.ts'
import { apiError } from '../../errors.ts'

/** Enough for file-type to distinguish every format, by its documentation. */
const SNIFF_BYTES = 4100

/** Quicktime (`video/quicktime`) and Matroska (`video/matroska`) share the demuxers but are not on the accepted list. */
const acceptedTypes = new Map<string, MediaType>([
  ['image/gif', 'gif'],
  ['video/mp4', 'mp4'],
  ['video/x-m4v', 'mp4'],
  ['video/webm', 'webm'],
])

/** Detects the type by the first bytes, never a name; it only selects the demuxer. Throws unsupported_media_type. */
export async function sniffBytes(head: Uint8Array): Promise<MediaType> {
  const type = await findType(head)
  if (!type) throw apiError('unsupported_media_type', { cause: 'no known type' })
  return type
}

export async function findType(head: Uint8Array): Promise<MediaType | undefined> {
  const found = await fileTypeFromBuffer(head.subarray(0, SNIFF_BYTES)).catch(() => undefined)
  return acceptedTypes.get(found?.mime ?? '')
}

export async function sniffFile(path: string): Promise<MediaType> {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(SNIFF_BYTES), position: 0 })
  // Awaited here: a rejection would be unhandled while the file closes.
  return await sniffBytes(buffer.subarray(0, bytesRead))
}
