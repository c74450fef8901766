import { apiError } from '../../errors.ts'

/** Public class of an upstream failure; its own words stay private (contract/media.md 2.6). */
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
