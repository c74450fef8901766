/**
 * This folder runs the operator's yt-dlp for one page at a time. yt-dlp only reports the URL of the media: its requests
 * go through our guard, and our own fetcher gets the media. Neither the program nor its output is trusted.
 */

import { createSemaphore } from '@services/common/concurrency/semaphore'
import type { ApiError } from '@services/common/errors'
import type { Config } from '../../config.ts'
import { longestSource } from '../../core/edits/edit.ts'
import { apiError, busy } from '../../errors.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import type { WorkDirectory } from '../../make/jobs/work-directory.ts'
import { createSourceGuard } from '../remote/source-guard.ts'
import { parseJson } from '../sites/json.ts'
import type { ExtractPage } from '../sites/site.ts'
import { readAnswer } from './read-answer.ts'
import { runYtdlp, type YtdlpOutcome } from './run-ytdlp.ts'

/** Each run is a Python of 100 MB for some seconds. One token gets half of the slots, because its pages may be slow. */
const AT_ONCE = { atOnce: 2, waiting: 16, waitMs: 15_000, perKey: { atOnce: 1, waiting: 8 } }

/**
 * Throws site_login_required, unsupported_site_content, source_forbidden, source_fetch_failed, duration_exceeded, busy,
 * queue_full.
 */
export function createExtractPage(
  { config, tools, work }: { config: Pick<Config, 'source' | 'egress'>; tools: MediaTools; work: WorkDirectory },
  program: { path: string; cookies: string | undefined },
): ExtractPage {
  const runs = createSemaphore(AT_ONCE, busy)
  const guard = createSourceGuard(config.egress)
  return (address, { key, signal, endsAt, maxBytes, edit }) =>
    runs.run(
      async () => {
        const url = guard.parseUrl(address)
        await using directory = await work.newDirectory()
        const maxSeconds = longestSource(config.source, edit)
        const options = { ...program, guard, limiters: tools.limiters, maxSeconds, maxBytes }
        const wallSeconds = Math.max(0.001, (endsAt - performance.now()) / 1000)
        const ended = await runYtdlp(options, url.href, { directory: directory.path, signal, wallSeconds })
        const answer = ended.outcome.state === 'done' ? parseJson(ended.outcome.stdout) : undefined
        if (answer === undefined) throw ytdlpFailure(ended, url.hostname, { maxSeconds, maxBytes })
        const found = readAnswer(answer, url)
        if (found) return found
        throw apiError('unsupported_site_content', { details: { site: url.hostname } })
      },
      { key, signal },
    )
}

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
