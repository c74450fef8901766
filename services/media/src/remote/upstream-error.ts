import { ApiError } from '@services/common/errors'
import { errors } from 'undici'
import { apiError } from '../errors.ts'

/** What a caller learns about the far side: a class of failure, never its words (contract 2.6). */
type Upstream =
  | '4xx'
  | '5xx'
  | 'timeout'
  | 'too_slow'
  | 'too_many_redirects'
  | 'unreachable'
  | 'interrupted'
  | 'bad_response'

export const upstreamFailure = (upstream: Upstream, cause?: unknown) =>
  apiError('source_fetch_failed', { details: { upstream }, cause })

const TIMEOUTS = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
  'ESOCKETTIMEDOUT',
])

/** Refusals and limits that were already decided pass unchanged; what undici and the socket throw becomes a class. */
export function toUpstreamFailure(error: unknown, otherwise: Upstream): ApiError {
  if (error instanceof ApiError) return error
  const code = String((error as { code?: unknown } | null)?.code ?? '')
  if (TIMEOUTS.has(code)) return upstreamFailure('timeout', error)
  if (error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError) {
    return upstreamFailure('bad_response', error)
  }
  return upstreamFailure(otherwise, error)
}
