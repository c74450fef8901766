import type { ApiError } from '@services/common/errors'
import { apiError } from '../../errors.ts'
import type { YtdlpOutcome } from './run-ytdlp.ts'

/** The first match wins: a wall is often a 403 with words about signing in. Any other text is `bad_response`. */
const MEANINGS: readonly [RegExp, Meaning][] = [
  [
    /\blog(ged)?[ -]?in\b|\bsign in\b|--cookies|registered users|private (video|account|post)|only available to/i,
    'login',
  ],
  [
    /Unsupported URL|No suitable extractor|[Nn]o (video|media)\b|There('s| is) no video|Requested format is not available/,
    'none',
  ],
  [/does not pass filter \(.{0,500}duration/, 'long'],
  [/larger than max-filesize/, 'large'],
  [/HTTP Error 5\d\d/, '5xx'],
  [/HTTP Error 4\d\d|does not exist|not found|deleted|removed|unavailable/i, '4xx'],
  [/timed out/i, 'timeout'],
  [/Unable to (download|connect)|Connection|getaddrinfo|Network is unreachable/, 'unreachable'],
]

type Meaning = 'login' | 'none' | 'long' | 'large' | '5xx' | '4xx' | 'timeout' | 'unreachable' | 'bad_response'

/** Converts an end without an answer into a public failure; yt-dlp's own words stay private. */
export function ytdlpFailure(
  { outcome, hasRefused }: YtdlpOutcome,
  site: string,
  limits: { maxSeconds: number; maxBytes: number },
): ApiError {
  const words = outcome.state === 'failed' ? outcome.stderr : ''
  const known = MEANINGS.find(([pattern]) => pattern.test(words))?.[1]
  // Only without known words: many a page links to a refused address.
  if (!known && hasRefused) return apiError('source_forbidden', { cause: outcome })
  const meaning = outcome.state === 'timed-out' ? 'timeout' : (known ?? 'bad_response')
  const cause = outcome
  if (meaning === 'login') return apiError('site_login_required', { details: { site }, cause })
  if (meaning === 'none') return apiError('unsupported_site_content', { details: { site }, cause })
  if (meaning === 'long') return apiError('duration_exceeded', { details: { limit: limits.maxSeconds }, cause })
  if (meaning === 'large') return apiError('file_too_large', { details: { limit: limits.maxBytes }, cause })
  return apiError('source_fetch_failed', { details: { upstream: meaning, site }, cause })
}
