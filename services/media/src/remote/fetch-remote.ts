/**
 * Owns every byte that comes from a foreign server: an egress client of its own, apart from all others in the process.
 * The rule: nothing from outside is waited for, followed or stored without a limit. Where to look next: ssrf-guard.ts.
 */
import { createHash } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import { Agent } from 'undici'
import { apiError } from '../errors.ts'
import { type RemoteTimeouts, startDeadlines } from './deadlines.ts'
import { guardedConnector, type Resolve, resolveWithSystem } from './guarded-connector.ts'
import { limitCrumbs } from './limit-crumbs.ts'
import { discard, openResponse, type RemoteResponse } from './open-response.ts'
import { type PostOptions, postRemote } from './post-remote.ts'
import { createGuard, type GuardOptions } from './ssrf-guard.ts'
import { toUpstreamFailure } from './upstream-error.ts'

export interface RemoteOptions extends GuardOptions {
  userAgent?: string
  timeouts?: Partial<RemoteTimeouts>
  /** Replaces the system's resolver; tests play a hostile name server with it. */
  resolve?: Resolve
}

export interface FetchOptions {
  /** More is refused. */
  maxBytes: number
  /** The caller's own reason to stop; the call then rejects with `signal.reason`. */
  signal?: AbortSignal
  /** Shorter than the general limit where the caller has less patience, as for a page. */
  totalMs?: number
}

export interface FetchedFile {
  bytes: number
  /** Hex. */
  sha256: string
  /** What the server claims, without parameters, in lower case. Never to be trusted: sniff. */
  contentType: string | undefined
}

export interface Remote {
  /**
   * Streams a URL into a new file (mode 0600; the path must not exist) and hashes it on the way. No file is left behind
   * on failure. Throws ApiError source_forbidden, source_fetch_failed (`details.upstream`) or file_too_large.
   */
  fetchToFile: (url: string, path: string, options: FetchOptions) => Promise<FetchedFile>
  /** Sends a body and tells the status of the answer; follows nothing. Throws as above. */
  post: (url: string, options: PostOptions) => Promise<{ status: number }>
  /** Throws source_forbidden where the address alone tells that nothing would be sent there. */
  checkUrl: (url: string) => Promise<void>
  close: () => Promise<void>
}

/** contract/media.md 4.4. */
const DEFAULT_TIMEOUTS: RemoteTimeouts = {
  connectMs: 5_000,
  headersMs: 8_000,
  idleMs: 8_000,
  totalMs: 120_000,
  lowSpeed: { bytesPerSecond: 32 * 1024, windowMs: 15_000, graceMs: 10_000 },
}

/** Builds the egress client. Throws when a CIDR is malformed. */
export function createRemote(options: RemoteOptions = {}): Remote {
  const guard = createGuard(options)
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts }
  const agent = new Agent({
    connect: guardedConnector(guard, options.resolve ?? resolveWithSystem, timeouts.connectMs),
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.idleMs,
    maxHeaderSize: 16_384,
    // As many as there are downloads: who waits for one of few connections waits for a stranger's slow source.
    connections: 16,
    pipelining: 1,
  })
  const egress = agent.compose(limitCrumbs)
  const headers = { 'user-agent': options.userAgent ?? 'media-import', accept: 'video/*, image/gif, */*;q=0.5' }

  /** Opens the URL and hands the response to `consume` under one set of deadlines. */
  const fetchWith = async <T>(url: string, fetch: FetchOptions, consume: (response: LimitedResponse) => Promise<T>) => {
    const totalMs = Math.min(fetch.totalMs ?? timeouts.totalMs, timeouts.totalMs)
    const deadlines = startDeadlines({ ...timeouts, totalMs }, fetch.signal)
    try {
      const answerMs = timeouts.connectMs + timeouts.headersMs
      const response = await openResponse(egress, guard, url, { headers, signal: deadlines.signal, answerMs })
      try {
        return await consume({ ...response, chunks: readBody(response, deadlines) })
      } finally {
        discard(response.body)
      }
    } finally {
      deadlines.stop()
    }
  }

  return {
    fetchToFile: (url, path, fetch) =>
      withNewFile(path, (file) => fetchWith(url, fetch, (response) => writeTo(file, response, fetch.maxBytes))),
    post: (url, options) =>
      postRemote(egress, guard, url, {
        ...options,
        headers: { 'user-agent': headers['user-agent'], ...options.headers },
      }),
    checkUrl: async (url) => void guard.parseUrl(url),
    close: () => agent.destroy(),
  }
}

type LimitedResponse = RemoteResponse & { chunks: AsyncGenerator<Buffer> }
type NewFile = Awaited<ReturnType<typeof open>>

/** Failures of the network are translated here, so that failures of our own disk stay what they are. */
async function* readBody(
  { body }: RemoteResponse,
  deadlines: ReturnType<typeof startDeadlines>,
): AsyncGenerator<Buffer> {
  deadlines.startLowSpeedWatch()
  try {
    for await (const chunk of body) {
      deadlines.countBytes(chunk.length)
      yield chunk
    }
  } catch (error) {
    deadlines.signal.throwIfAborted()
    throw toUpstreamFailure(error, 'interrupted')
  }
}

async function writeTo(file: NewFile, response: LimitedResponse, maxBytes: number): Promise<FetchedFile> {
  const tooLarge = () => apiError('file_too_large', { details: { limit: maxBytes } })
  if (Number(response.headers['content-length'] ?? 0) > maxBytes) throw tooLarge()
  const hash = createHash('sha256')
  let bytes = 0
  const measured = async function* () {
    for await (const chunk of response.chunks) {
      bytes += chunk.length
      if (bytes > maxBytes) throw tooLarge()
      hash.update(chunk)
      yield chunk
    }
  }
  await file.writeFile(measured())
  return { bytes, sha256: hash.digest('hex'), contentType: contentTypeOf(response) }
}

/** `wx`: a path that exists is somebody else's file, and is neither written nor removed. */
async function withNewFile<T>(path: string, fill: (file: NewFile) => Promise<T>): Promise<T> {
  const file = await open(path, 'wx', 0o600)
  try {
    const result = await fill(file)
    await file.close()
    return result
  } catch (error) {
    await file.close().catch(() => {})
    await rm(path, { force: true })
    throw error
  }
}

function contentTypeOf({ headers }: RemoteResponse): string | undefined {
  return headers['content-type']?.split(';')[0]?.trim().toLowerCase() || undefined
}
