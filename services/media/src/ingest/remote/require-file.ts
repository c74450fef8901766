import { apiError } from '../../errors.ts'
import type { RemoteAnswer } from './fetch-remote.ts'
import { upstreamFailure } from './upstream-error.ts'

export function requireOk({ status }: Pick<RemoteAnswer, 'status'>): void {
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
export function requirePlain(answer: Pick<RemoteAnswer, 'headers'>): void {
  const encoding = encodingOf(answer)
  if (encoding !== 'identity') throw upstreamFailure('bad_response', `content-encoding ${encoding}`)
}

export const encodingOf = ({ headers }: Pick<RemoteAnswer, 'headers'>): string =>
  String(headers['content-encoding'] ?? 'identity')
    .trim()
    .toLowerCase()
