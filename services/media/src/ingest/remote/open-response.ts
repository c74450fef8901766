import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { Guard } from '@services/common/egress/ssrf-guard'
import { tracedRequest } from '@services/common/telemetry/spans'
import { type Dispatcher, request } from 'undici'
import { toUpstreamFailure } from './translate-error.ts'
import { upstreamFailure } from './upstream-error.ts'

export interface RemoteResponse {
  url: URL
  status: number
  headers: IncomingHttpHeaders
  /** Target of a redirect that `mayVisit` refused; its body is dropped. */
  next?: URL
  /** Must be read to the end or destroyed. */
  body: Readable
}

export interface OpenOptions {
  /** Sent to every server on the way, so without secrets. */
  headers: Record<string, string>
  /** Keys and cookies for the first origin only; redirect targets do not get them. */
  ownHeaders?: Record<string, string> | undefined
  /** Makes it a POST with this form, whose redirects are not followed. */
  form?: Record<string, string>
  mayVisit?: (url: URL) => boolean
  /** Replaces the requested address, for tests and private mirrors. */
  standIn?: (url: URL) => string
  signal: AbortSignal
  /** Per hop, from the DNS query to the final headers. */
  answerMs: number
}

/** Enough for http -> https -> www -> CDN; more is a loop or an attack (contract/media.md 4.4). */
const MAX_REDIRECTS = 5

/** Follows redirects, each through the guard. Throws source_forbidden, source_fetch_failed, or the signal's reason. */
export async function openResponse(
  dispatcher: Dispatcher,
  guard: Guard,
  source: string,
  options: OpenOptions,
): Promise<RemoteResponse> {
  const { standIn = ({ href }) => href, mayVisit = () => true, form, ownHeaders } = options
  const first = guard.parseUrl(source)
  let url = first
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const headers = url.origin === first.origin ? { ...options.headers, ...ownHeaders } : options.headers
    const { statusCode, ...response } = await send(dispatcher, guard.parseUrl(standIn(url)), { ...options, headers })
    const target = redirectTarget(statusCode, response.headers)
    if (target === undefined) return { url, status: statusCode, ...response }

    discard(response.body)
    const next = guard.parseUrl(target, url)
    if (form || !mayVisit(next)) return { url, status: statusCode, ...response, next }
    url = next
  }
  throw upstreamFailure('too_many_redirects')
}

/** Sends one request under a separate clock, because every interim answer (1xx) restarts the client's. */
async function send(
  dispatcher: Dispatcher,
  url: URL,
  { headers, form, signal, answerMs }: OpenOptions,
): Promise<Dispatcher.ResponseData> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(upstreamFailure('timeout', 'no final headers in time')), answerMs)
  const either = AbortSignal.any([signal, late.signal])
  const sent = { ...headers, 'accept-encoding': 'identity' }
  const post = form && {
    method: 'POST' as const,
    headers: { ...sent, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  }
  try {
    // An untrusted site must not see our trace context; each page or hop has its own span.
    return await tracedRequest(
      { url, method: post?.method ?? 'GET', sendsTrace: false },
      () => request(url, { dispatcher, signal: either, headers: sent, ...post }),
      ({ statusCode }) => statusCode,
    )
  } catch (error) {
    either.throwIfAborted()
    throw toUpstreamFailure(error, 'unreachable')
  } finally {
    clearTimeout(timer)
  }
}

function redirectTarget(status: number, { location }: IncomingHttpHeaders): string | undefined {
  if (![301, 302, 303, 307, 308].includes(status)) return undefined
  return Array.isArray(location) ? location[0] : location
}

/** Drops the connection instead of reading on: the rest of an unwanted body may never end. */
export function discard(body: Readable): void {
  body.on('error', () => {}).destroy()
}
