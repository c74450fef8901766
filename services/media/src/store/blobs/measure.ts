import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'

const PIECE_BYTES = 256 * 1024

export interface Measured {
  bytes: number
  /** Lower-case hex; the file is stored under it. */
  sha256: string
}

/** Counts and hashes a stream; throws `limit.refuse()` at the chunk that crosses `limit.maxBytes`. */
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
    end: (): Measured => ({ bytes, sha256: hash.digest('hex') }),
  }
}

/** Reads through one buffer: a stream's, new for every 64 KiB, cost more to collect than to fill. */
export async function hashFile(path: string, signal?: AbortSignal): Promise<Measured & { path: string }> {
  const hash = createHash('sha256')
  const piece = Buffer.allocUnsafeSlow(PIECE_BYTES)
  await using file = await open(path)
  for (let bytes = 0; ; ) {
    signal?.throwIfAborted()
    const { bytesRead } = await file.read(piece)
    if (bytesRead === 0) return { path, bytes, sha256: hash.digest('hex') }
    hash.update(piece.subarray(0, bytesRead))
    bytes += bytesRead
  }
}
