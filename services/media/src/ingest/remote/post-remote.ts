import { tracedRequest } from '@services/common/tracing'
import { type Dispatcher, request } from 'undici'
import type { Guard } from './ssrf-guard.ts'
import { toUpstreamFailure } from './translate-error.ts'
import { upstreamFailure } from './upstream-error.ts'

export interface PostOptions {
  body: string
  headers: Record<string, string>
  /** Limit from the DNS query to the last byte that is read. */
  totalMs: number
}

/** Part of the answer that is read, so that the connection can be reused. */
const MOST_ANSWER_BYTES = 16 * 1024

/** Sends a body without following redirects. Throws source_forbidden, source_fetch_failed (`details.upstream`). */
export async function postRemote(
  dispatcher: Dispatcher,
  guard: Guard,
  url: string,
  { body, headers, totalMs }: PostOptions,
): Promise<{ status: number }> {
  const target = guard.parseUrl(url)
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(upstreamFailure('timeout')), totalMs)
  try {
    const answer = await tracedRequest(
      // The trace may belong to another token that uploaded the same bytes.
      { url: target, method: 'POST', sendsTrace: false },
      (traced) =>
        request(target, { dispatcher, method: 'POST', headers: { ...headers, ...traced }, body, signal: late.signal }),
      ({ statusCode }) => statusCode,
    )
    await answer.body.dump({ limit: MOST_ANSWER_BYTES, signal: late.signal }).catch(() => {})
    return { status: answer.statusCode }
  } catch (error) {
    late.signal.throwIfAborted()
    throw toUpstreamFailure(error, 'unreachable')
  } finally {
    clearTimeout(timer)
  }
}
