import { createReadStream, createWriteStream } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { apiError } from '../../errors.ts'
import type { FetchOptions, Remote, RemoteAnswer } from '../remote/fetch-remote.ts'
import { requireOk, requirePlain } from '../remote/require-file.ts'
import { upstreamFailure } from '../remote/upstream-error.ts'

import type { Piece, Track } from './manifest.ts'

interface DownloadOptions extends Required<Pick<FetchOptions, 'mayVisit' | 'signal' | 'totalMs'>> {
  directory: string
  /** Limit of all tracks together. */
  maxBytes: number
  headers?: Record<string, string>
}

/** Per track: enough to hide latency, few enough for a small server. */
const PIECES_AT_ONCE = 4

/**
 * Joins each track's pieces into `track-0`, `track-1`. Throws what a fetch throws, and file_too_large for their sum.
 */
export async function downloadTracks(
  { remote }: { remote: Remote },
  tracks: readonly Track[],
  { maxBytes, signal: callerSignal, ...options }: DownloadOptions,
): Promise<string[]> {
  const budget = createBudget(maxBytes)
  return allOrNone(tracks, callerSignal, async (track, index, signal) => {
    const path = join(options.directory, `track-${index}`)
    for (let first = 0; first < track.pieces.length; first += PIECES_AT_ONCE) {
      const batch = track.pieces.slice(first, first + PIECES_AT_ONCE)
      const parts = await allOrNone(batch, signal, async (piece, place, pieceSignal) => {
        const part = `${path}-${place}`
        await fetchPiece(remote, piece, part, budget, { ...options, signal: pieceSignal })
        return part
      })
      for (const part of parts) {
        await pipeline(createReadStream(part), createWriteStream(path, { flags: 'a', mode: 0o600 }), { signal })
        await rm(part)
      }
    }
    return path
  })
}

function createBudget(maxBytes: number) {
  let left = maxBytes
  const requireLeft = (bytes: number) => {
    if (bytes > left) throw apiError('file_too_large', { details: { limit: maxBytes } })
  }
  return {
    requireLeft,
    spendOn: async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const chunk of chunks) {
        requireLeft(chunk.length)
        left -= chunk.length
        yield chunk
      }
    },
  }
}

/** The first failure aborts the others, and is thrown once all have ended, so that none still writes. */
async function allOrNone<T, R>(
  items: readonly T[],
  callerSignal: AbortSignal,
  work: (item: T, index: number, signal: AbortSignal) => Promise<R>,
): Promise<R[]> {
  const failure = new AbortController()
  const signal = AbortSignal.any([callerSignal, failure.signal])
  const running = items.map(async (item, index) => {
    try {
      return await work(item, index, signal)
    } catch (error) {
      failure.abort(error)
      throw error
    }
  })
  await Promise.allSettled(running)
  if (failure.signal.aborted) throw failure.signal.reason
  return Promise.all(running)
}

async function fetchPiece(
  remote: Remote,
  { url, range }: Piece,
  path: string,
  budget: ReturnType<typeof createBudget>,
  { headers, mayVisit, signal, totalMs }: Omit<DownloadOptions, 'maxBytes' | 'directory'>,
): Promise<void> {
  const ownHeaders = { ...headers, ...(range && { range: `bytes=${range.offset}-${range.offset + range.length - 1}` }) }
  await remote.fetch(url, { ownHeaders, mayVisit, signal, totalMs }, async (answer) => {
    if (answer.next) throw apiError('source_forbidden', { cause: 'redirected to another site' })
    const skip = skipOf(answer, range)
    requirePlain(answer)
    budget.requireLeft(Number(answer.headers['content-length'] ?? 0))
    const chunks = budget.spendOn(answer.chunks)
    await writeFile(path, range ? cut(chunks, skip, range.length) : chunks, { flag: 'wx', mode: 0o600 })
  })
}

/** Bytes of the answer before the requested range: some servers send the whole file. */
function skipOf(answer: RemoteAnswer, range: Piece['range']): number {
  if (range && answer.status === 206) {
    const start = /^bytes (\d+)-/.exec(answer.headers['content-range'] ?? '')?.[1]
    if (Number(start) === range.offset) return 0
    throw upstreamFailure('bad_response', 'a range that was not requested')
  }
  requireOk(answer)
  return range?.offset ?? 0
}

async function* cut(chunks: AsyncIterable<Buffer>, skip: number, length: number): AsyncGenerator<Buffer> {
  const end = skip + length
  let at = 0
  for await (const chunk of chunks) {
    yield chunk.subarray(Math.max(0, skip - at), Math.max(0, end - at))
    at += chunk.length
    if (at >= end) return
  }
  throw upstreamFailure('interrupted', 'less than the requested range')
}
