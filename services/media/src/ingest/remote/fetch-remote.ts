/**
 * Owns every byte that comes from a foreign server: an egress client of its own, apart from all others in the process.
 * The rule: nothing from outside is waited for, followed or stored without a limit. Where to look next: ssrf-guard.ts.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { Agent } from 'undici'
import { type RemoteTimeouts, startDeadlines } from './deadlines.ts'
import { guardedConnector } from './guarded-connector.ts'
import { limitCrumbs } from './limit-crumbs.ts'
import { discard, type OpenOptions, openResponse, type RemoteResponse } from './open-response.ts'
import { type PostOptions, postRemote } from './post-remote.ts'
import { type Resolve, resolveName } from './resolve-name.ts'
import { createGuard, type GuardOptions } from './ssrf-guard.ts'
import { toUpstreamFailure } from './translate-error.ts'

export interface RemoteOptions extends GuardOptions {
  userAgent?: string
  timeouts?: Partial<RemoteTimeouts>
  /** Replaces ours; tests play a hostile name server with it. */
  resolve?: Resolve
  /** Addresses to use for a host instead of its own, without a slash at the end. */
  standIns?: ReadonlyMap<string, string>
}

export interface FetchOptions extends Pick<OpenOptions, 'ownHeaders' | 'form' | 'mayVisit'> {
  /** The caller's own reason to stop; the call then rejects with `signal.reason`. */
  signal?: AbortSignal
  /** Shorter than the general limit where the caller has less patience, as for a page. */
  totalMs?: number
}

/** An answer of any status, as it comes in. */
export interface RemoteAnswer {
  url: URL
  status: number
  headers: IncomingHttpHeaders
  /** Where the redirect leads that was not followed; it comes without chunks. */
  next?: URL
  chunks: AsyncGenerator<Buffer>
}

export interface Remote {
  /**
   * Asks for a URL and hands the answer to `read`, which bounds what it takes of it; what it leaves is never read.
   * Throws ApiError source_forbidden and source_fetch_failed (`details.upstream`), and what `read` throws.
   */
  fetch: <T>(url: string, options: FetchOptions, read: (answer: RemoteAnswer) => Promise<T>) => Promise<T>
  /** Sends a body and tells the status of the answer; follows nothing. Throws as `fetch` does. */
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
    connect: guardedConnector(guard, options.resolve ?? resolveName, timeouts.connectMs),
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.idleMs,
    maxHeaderSize: 16_384,
    // As many as there are downloads: who waits for one of few connections waits for a stranger's slow source.
    connections: 16,
    pipelining: 1,
  })
  const egress = agent.compose(limitCrumbs)
  const headers = { 'user-agent': options.userAgent ?? 'media-import', accept: 'video/*, image/gif, */*;q=0.5' }

  const standIn = standInsOf(options.standIns)

  const fetch: Remote['fetch'] = async (url, { totalMs = timeouts.totalMs, signal: callerSignal, ...asked }, read) => {
    const deadlines = startDeadlines({ ...timeouts, totalMs: Math.min(totalMs, timeouts.totalMs) }, callerSignal)
    try {
      const answerMs = timeouts.connectMs + timeouts.headersMs
      const { signal } = deadlines
      const { body, ...answer } = await openResponse(egress, guard, url, {
        ...{ ...asked, headers, signal, answerMs, standIn },
      })
      try {
        return await read({ ...answer, chunks: answer.next ? nothing() : readBody(body, deadlines) })
      } finally {
        discard(body)
      }
    } finally {
      deadlines.stop()
    }
  }

  return {
    fetch,
    post: (url, options) =>
      postRemote(egress, guard, url, {
        ...options,
        headers: { 'user-agent': headers['user-agent'], ...options.headers },
      }),
    checkUrl: async (url) => void guard.parseUrl(url),
    close: () => agent.destroy(),
  }
}

/** The host's part of an address is replaced, the rest stays. */
const standInsOf =
  (bases: ReadonlyMap<string, string> = new Map()) =>
  (url: URL): string => {
    const base = bases.get(url.host)
    return base === undefined ? url.href : base + url.pathname + url.search
  }

/** A redirect says all in its headers, and its body was dropped. */
async function* nothing(): AsyncGenerator<Buffer> {}

/** Failures of the network are translated here, so that failures of our own disk stay what they are. */
async function* readBody(
  body: RemoteResponse['body'],
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
