import { ApiError } from '@services/common/errors'
import { errors } from 'undici'
import { type Upstream, upstreamFailure } from './upstream-error.ts'

const TIMEOUTS = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
  'ESOCKETTIMEDOUT',
])

/** Passes refusals and limits unchanged; turns an error of undici or the socket into its class. */
export function toUpstreamFailure(error: unknown, otherwise: Upstream): ApiError {
  if (error instanceof ApiError) return error
  const code = String((error as { code?: unknown } | null)?.code ?? '')
  if (TIMEOUTS.has(code)) return upstreamFailure('timeout', error)
  if (error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError) {
    return upstreamFailure('bad_response', error)
  }
  return upstreamFailure(otherwise, error)
}
