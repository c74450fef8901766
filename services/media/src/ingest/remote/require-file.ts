import type { IncomingHttpHeaders } from 'node:http'
import { apiError } from '../../errors.ts'
import { upstreamFailure } from './upstream-error.ts'

interface Answer {
  status: number
  headers: IncomingHttpHeaders
}

export function requireOk({ status }: Answer): void {
  if (status === 200) return
  const cause = `status ${status}`
  if (status === 429) {
    throw apiError('source_fetch_failed', { details: { upstream: '4xx', reason: 'rate_limited' }, cause })
  }
  if (status >= 400 && status < 500) throw upstreamFailure('4xx', cause)
  if (status >= 500) throw upstreamFailure('5xx', cause)
  throw upstreamFailure('bad_response', cause)
}

/** Refuses a body that is encoded although identity was requested: a possible decompression bomb, and no media file. */
export function requirePlain(answer: Answer): void {
  const encoding = encodingOf(answer)
  if (encoding !== 'identity') throw upstreamFailure('bad_response', `content-encoding ${encoding}`)
}

export const encodingOf = ({ headers }: Pick<Answer, 'headers'>): string =>
  String(headers['content-encoding'] ?? 'identity')
    .trim()
    .toLowerCase()
