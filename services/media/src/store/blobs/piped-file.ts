import type { FileHandle } from 'node:fs/promises'
import type { Readable, Writable } from 'node:stream'
import type { ByteRange } from './blob-storage.ts'

/**
 * A stalled reader holds one buffer: 8 MiB for all the large ones together, and a small one for each further reader.
 */
const LARGE_PIECE_BYTES = 256 * 1024
const MAX_LARGE_PIECES = 32
const SMALL_PIECE_BYTES = 64 * 1024

/** File streams that reuse buffers: new ones make V8 collect its heap several times a second, a third of the CPU. */
export function createFilePipes() {
  const free: Buffer[] = []
  let taken = 0

  const take = () => {
    if (taken >= MAX_LARGE_PIECES) return Buffer.allocUnsafe(SMALL_PIECE_BYTES)
    taken++
    return free.pop() ?? Buffer.allocUnsafeSlow(LARGE_PIECE_BYTES)
  }
  /** A buffer that a broken connection was still writing is not reused. */
  const release = (piece: Buffer, isUnused: boolean) => {
    if (piece.length !== LARGE_PIECE_BYTES) return
    taken--
    if (isUnused) free.push(piece)
  }

  return (file: FileHandle, range: ByteRange): Readable => {
    const stream = file.createReadStream({ ...range, highWaterMark: SMALL_PIECE_BYTES })
    const copyTo = async (to: Writable) => {
      const piece = take()
      let isUnused = true
      try {
        for (let position = range.start; position <= range.end; ) {
          const { bytesRead } = await file.read(piece, 0, Math.min(piece.length, range.end + 1 - position), position)
          if (bytesRead === 0) throw new Error('a stored file became shorter')
          position += bytesRead
          isUnused = false
          await write(to, piece.subarray(0, bytesRead))
          isUnused = true
        }
      } finally {
        release(piece, isUnused)
      }
    }
    stream.pipe = (to, { end = true } = {}) => {
      copyTo(to as unknown as Writable).then(
        () => {
          stream.push(null)
          stream.resume()
          if (end) to.end()
        },
        (error) => stream.destroy(error),
      )
      return to
    }
    return stream
  }
}

/** Resolves when the buffer may be overwritten. */
const write = (to: Writable, chunk: Buffer) =>
  new Promise<void>((resolve, reject) => {
    const fail = () => reject(new Error('the reader disconnected'))
    to.once('close', fail)
    to.write(chunk, (error) => {
      to.off('close', fail)
      if (error) reject(error)
      else resolve()
    })
  })
