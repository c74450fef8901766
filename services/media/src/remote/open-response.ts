import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { type Dispatcher, request } from 'undici'
import type { Guard } from './ssrf-guard.ts'
import { toUpstreamFailure, upstreamFailure } from './upstream-error.ts'

export interface RemoteResponse {
  headers: IncomingHttpHeaders
  /** Must be read to the end or destroyed. */
  body: Readable
}

export interface OpenOptions {
  /** Sent to every server on the way: nothing that is meant for one of them. */
  headers: Record<string, string>
  signal: AbortSignal
  /** For each hop, from the look-up to its final headers. */
  answerMs: number
}

/** Enough for http -> https -> www -> CDN; more is a loop or a game (contract 4.4). */
const MAX_REDIRECTS = 5

/**
 * Follows redirects by hand, every hop through the guard, to a 200 with a plain body.
 * Throws ApiError source_forbidden or source_fetch_failed; rejects with the signal's reason when that aborts.
 */
export async function openResponse(
  dispatcher: Dispatcher,
  guard: Guard,
  source: string,
  options: OpenOptions,
): Promise<RemoteResponse> {
  let url = guard.parseUrl(source)
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const response = await send(dispatcher, url, options)
    const next = redirectTarget(response)
    if (next === undefined) return accept(response)

    discard(response.body)
    url = guard.parseUrl(next, url)
  }
  throw upstreamFailure('too_many_redirects')
}

/** A clock of our own: every interim answer (1xx) winds up the client's one again, without end. */
async function send(
  dispatcher: Dispatcher,
  url: URL,
  { headers, signal, answerMs }: OpenOptions,
): Promise<Dispatcher.ResponseData> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(upstreamFailure('timeout', 'no final headers in time')), answerMs)
  const either = AbortSignal.any([signal, late.signal])
  try {
    return await request(url, {
      dispatcher,
      signal: either,
      headers: { ...headers, 'accept-encoding': 'identity' },
    })
  } catch (error) {
    either.throwIfAborted()
    throw toUpstreamFailure(error, 'unreachable')
  } finally {
    clearTimeout(timer)
  }
}

function redirectTarget({ statusCode, headers }: Dispatcher.ResponseData): string | undefined {
  if (![301, 302, 303, 307, 308].includes(statusCode)) return undefined
  const location = headers.location
  return Array.isArray(location) ? location[0] : location
}

function accept({ statusCode, headers, body }: Dispatcher.ResponseData) {
  // A body that is still encoded although identity was asked for could be a decompression bomb, and is no media file.
  const isPlain = /^identity$/i.test(String(headers['content-encoding'] ?? 'identity'))
  if (isPlain && statusCode === 200) return { headers, body }
  discard(body)
  const cause = `status ${statusCode}, content-encoding ${headers['content-encoding']}`
  if (statusCode >= 400 && statusCode < 500) throw upstreamFailure('4xx', cause)
  if (statusCode >= 500) throw upstreamFailure('5xx', cause)
  throw upstreamFailure('bad_response', cause)
}

/** Drops the connection instead of reading on: the rest of an unwanted body may never end. */
export function discard(body: Readable): void {
  body.on('error', () => {}).destroy()
}
