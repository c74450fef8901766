import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'

/** How much it was, and its SHA-256 in hex, by which it is stored. */
export interface Measured {
  bytes: number
  sha256: string
}

/** Counts and hashes a file on its way; `limit.refuse` makes what is thrown at the chunk that crosses `limit.maxBytes`. */
export function createMeasure(limit?: { maxBytes: number; refuse: () => Error }) {
  const hash = createHash('sha256')
  let bytes = 0
  return {
    async *pass(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const chunk of chunks) {
        bytes += chunk.length
        if (limit && bytes > limit.maxBytes) throw limit.refuse()
        hash.update(chunk)
        yield chunk
      }
    },
    /** Once, when all has passed. */
    end: (): Measured => ({ bytes, sha256: hash.digest('hex') }),
  }
}

export async function hashFile(path: string, signal?: AbortSignal): Promise<Measured & { path: string }> {
  const hash = createHash('sha256')
  const file = createReadStream(path)
  await pipeline(file, hash, { ...(signal && { signal }) })
  return { path, bytes: file.bytesRead, sha256: hash.digest('hex') }
}
