import { apiError } from '../../errors.ts'

/** What a caller learns about the far side: a class of failure, never its words (contract 2.6). */
export type Upstream =
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
