/**
 * This folder owns every byte from a foreign server: an egress client apart from all others in the process. Nothing
 * from outside is awaited, followed or stored without a limit. Tests: beside the files, test/endless-bodies.test.ts and
 * test/slow-sources.test.ts.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { guardedConnector } from '@services/common/egress/guarded-connector'
import { limitCrumbs } from '@services/common/egress/limit-crumbs'
import { type Resolve, resolveName } from '@services/common/egress/resolve-name'
import type { GuardOptions } from '@services/common/egress/ssrf-guard'
import { Agent } from 'undici'
import { type RemoteTimeouts, startDeadlines } from './deadlines.ts'
import { discard, type OpenOptions, openResponse, type RemoteResponse } from './open-response.ts'
import { type PostOptions, postRemote } from './post-remote.ts'
import { createSourceGuard } from './source-guard.ts'
import { toUpstreamFailure } from './translate-error.ts'
import { upstreamFailure } from './upstream-error.ts'

export interface RemoteOptions extends GuardOptions {
  userAgent?: string
  timeouts?: Partial<RemoteTimeouts>
  /** Replaces `resolveName`, for tests with a hostile name server. */
  resolve?: Resolve
  /** Replacement addresses by host, without a slash at the end. */
  standIns?: ReadonlyMap<string, string>
}

export interface FetchOptions extends Pick<OpenOptions, 'ownHeaders' | 'form' | 'mayVisit'> {
  signal?: AbortSignal
  totalMs?: number
}

/** An answer of any status, streamed. */
export interface RemoteAnswer {
  url: URL
  status: number
  headers: IncomingHttpHeaders
  /** Target of a redirect that was not followed; such an answer has no chunks. */
  next?: URL
  chunks: AsyncGenerator<Buffer>
}

export interface Remote {
  /**
   * Requests a URL and passes the answer to `read`, which bounds its bytes; the rest is never read.
   * Throws ApiError source_forbidden and source_fetch_failed (`details.upstream`), and what `read` throws.
   */
  fetch: <T>(url: string, options: FetchOptions, read: (answer: RemoteAnswer) => Promise<T>) => Promise<T>
  /** Sends a body and returns the status, and the answer on request; follows no redirect. Throws as `fetch` does. */
  post: (url: string, options: PostOptions) => Promise<{ status: number; answer: string }>
  /** Throws source_forbidden for a URL that the guard refuses before any DNS query. */
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
  const guard = createSourceGuard(options)
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts }
  const agent = new Agent({
    connect: guardedConnector(guard, options.resolve ?? resolveName, timeouts.connectMs),
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.idleMs,
    maxHeaderSize: 16_384,
    // Equals DOWNLOADS (deps.ts): with fewer, one slow source would delay the next.
    connections: 16,
    pipelining: 1,
  })
  const egress = agent.compose(limitCrumbs(() => upstreamFailure('bad_response', 'a body in crumbs')))
  const headers = { 'user-agent': options.userAgent ?? 'media-import', accept: 'video/*, image/gif, */*;q=0.5' }

  const standIn = standInsOf(options.standIns)

  const fetch: Remote['fetch'] = async (url, { totalMs = timeouts.totalMs, signal: outer, ...request }, read) => {
    const deadlines = startDeadlines({ ...timeouts, totalMs: Math.min(totalMs, timeouts.totalMs) }, outer)
    try {
      const answerMs = timeouts.connectMs + timeouts.headersMs
      const { signal } = deadlines
      const { body, ...answer } = await openResponse(egress, guard, url, {
        ...{ ...request, headers, signal, answerMs, standIn },
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

const standInsOf =
  (bases: ReadonlyMap<string, string> = new Map()) =>
  (url: URL): string => {
    const base = bases.get(url.host)
    return base === undefined ? url.href : base + url.pathname + url.search
  }

/** Body of a redirect, whose headers hold all; the real one was dropped. */
async function* nothing(): AsyncGenerator<Buffer> {}

/** Translates failures of the network here, so that failures of our own disk keep their type. */
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
