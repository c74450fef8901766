import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

const PIECE_BYTES = 256 * 1024

export interface Measured {
  bytes: number
  /** Lower-case hex; the file is stored under it. */
  sha256: string
}

interface Limit {
  maxBytes: number
  refuse: () => Error
}

/** Counts and hashes a stream; throws `limit.refuse()` at the chunk that crosses `limit.maxBytes`. */
export function createMeasure(limit?: Limit) {
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

/**
 * Writes a stream to a new file (mode 0600) and measures it. Waits until the file is closed, also after a failure. A
 * pipeline with a generator does not wait, and the file could be created after its removal.
 */
export async function writeMeasured(
  path: string,
  source: Readable,
  { limit, signal }: { limit?: Limit; signal?: AbortSignal } = {},
): Promise<Measured & { path: string }> {
  const measure = createMeasure(limit)
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 })
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  file.once('close', resolve)
  try {
    await pipeline(source, measure.pass, file, { signal })
  } finally {
    file.destroy()
    await closed
  }
  return { path, ...measure.end() }
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
