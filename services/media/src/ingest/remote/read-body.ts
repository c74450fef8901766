import { promisify } from 'node:util'
import { brotliDecompress, unzip } from 'node:zlib'
import type { RemoteAnswer } from './fetch-remote.ts'
import { encodingOf } from './require-file.ts'
import { upstreamFailure } from './upstream-error.ts'

/** Limit of an unpacked page or JSON text (contract/media.md 4.4). */
const MAX_UNPACKED_BYTES = 4 * 1024 * 1024

/** Reads at most `maxBytes`; unpacks unrequested compression within bounds, or throws source_fetch_failed. */
export async function readBody(body: Pick<RemoteAnswer, 'headers' | 'chunks'>, maxBytes: number): Promise<Buffer> {
  const bytes = await readStart(body.chunks, maxBytes)
  const unpacked = await unpack(encodingOf(body), bytes)
  return unpacked.subarray(0, maxBytes)
}

async function readStart(chunks: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    parts.push(chunk)
    bytes += chunk.length
    if (bytes >= maxBytes) break
  }
  return Buffer.concat(parts).subarray(0, maxBytes)
}

const unpackers: Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>> = {
  gzip: promisify(unzip),
  'x-gzip': promisify(unzip),
  deflate: promisify(unzip),
  br: promisify(brotliDecompress),
}

async function unpack(encoding: string, bytes: Buffer): Promise<Buffer> {
  if (encoding === 'identity' || bytes.length === 0) return bytes
  const unpacker = Object.hasOwn(unpackers, encoding) ? unpackers[encoding] : undefined
  if (!unpacker) throw upstreamFailure('bad_response', `content-encoding ${encoding}`)
  try {
    return await unpacker(bytes, { maxOutputLength: MAX_UNPACKED_BYTES })
  } catch (error) {
    throw upstreamFailure('bad_response', error)
  }
}
