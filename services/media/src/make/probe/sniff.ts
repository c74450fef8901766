import { open } from 'node:fs/promises'
import { fileTypeFromBuffer } from 'file-type'
import type { MediaType } from '../../db/media-info.ts'
import { unsupportedType } from './source-limits.ts'

/** Enough for file-type to distinguish every format, by its documentation. */
const SNIFF_BYTES = 4100

/** Names of file-type. Old cameras wrote QuickTime without `ftyp`, which it knows by the first box. */
const typeOf = new Map<string, MediaType>([
  ['image/gif', 'gif'],
  ['video/mp4', 'mp4'],
  ['video/x-m4v', 'mp4'],
  ['video/webm', 'webm'],
  ['video/quicktime', 'mov'],
  ['video/matroska', 'mkv'],
  ['video/3gpp', '3gp'],
  ['image/apng', 'apng'],
  ['image/webp', 'webp'],
  ['image/avif', 'avif'],
])

/** Detects the type by the first bytes, never a name; it only selects the demuxer. Throws unsupported_media_type. */
export async function sniffBytes(head: Uint8Array, types: readonly MediaType[]): Promise<MediaType> {
  const type = await findType(head, types)
  if (!type) throw unsupportedType(types, 'no known type')
  return type
}

/** Undefined for a type that is not accepted: `types` alone decides. */
export async function findType(head: Uint8Array, types: readonly MediaType[]): Promise<MediaType | undefined> {
  const found = await fileTypeFromBuffer(head.subarray(0, SNIFF_BYTES)).catch(() => undefined)
  const type = typeOf.get(found?.mime ?? '')
  return type && types.includes(type) ? type : undefined
}

export async function sniffFile(path: string, types: readonly MediaType[]): Promise<MediaType> {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(SNIFF_BYTES), position: 0 })
  // Awaited here: a rejection would be unhandled while the file closes.
  return await sniffBytes(buffer.subarray(0, bytesRead), types)
}
