import type { Guard } from '@services/common/egress/ssrf-guard'
import { tracedRequest } from '@services/common/telemetry/spans'
import { type Dispatcher, request } from 'undici'
import { toUpstreamFailure } from './translate-error.ts'
import { upstreamFailure } from './upstream-error.ts'

export interface PostOptions {
  body: string
  headers: Record<string, string>
  /** Limit from the DNS query to the last byte that is read. */
  totalMs: number
  /** Returns the answer as text, up to 16 KiB. */
  readsAnswer?: boolean
}

/** Part of the answer that is read, so that the connection can be reused. */
const MAX_ANSWER_BYTES = 16 * 1024

/** Sends a body without following redirects. Throws source_forbidden, source_fetch_failed (`details.upstream`). */
export async function postRemote(
  dispatcher: Dispatcher,
  guard: Guard,
  url: string,
  { body, headers, totalMs, readsAnswer = false }: PostOptions,
): Promise<{ status: number; answer: string }> {
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
    if (readsAnswer) return { status: answer.statusCode, answer: await readText(answer.body) }
    await answer.body.dump({ limit: MAX_ANSWER_BYTES, signal: late.signal }).catch(() => {})
    return { status: answer.statusCode, answer: '' }
  } catch (error) {
    late.signal.throwIfAborted()
    throw toUpstreamFailure(error, 'unreachable')
  } finally {
    clearTimeout(timer)
  }
}

/** Leaves the rest of a longer one unread, which closes its connection. */
async function readText(body: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of body) {
    parts.push(part)
    bytes += part.length
    if (bytes > MAX_ANSWER_BYTES) throw upstreamFailure('bad_response', 'the answer is too long')
  }
  return Buffer.concat(parts).toString()
}
