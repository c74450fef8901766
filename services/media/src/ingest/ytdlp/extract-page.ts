/**
 * This folder runs the operator's yt-dlp for one page at a time. yt-dlp only reports the URL of the media: its requests
 * go through our guard, and our own fetcher gets the media. The one rule: neither the program nor its output is
 * trusted. Tests: beside the files. Next: run-ytdlp.ts and guard-proxy.ts run it, read-answer.ts and ytdlp-failure.ts
 * read it.
 */
import { rm } from 'node:fs/promises'
import { createSlots } from '@services/common/slots'
import type { Config } from '../../config.ts'
import { apiError, busy } from '../../errors.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import type { WorkDirectory } from '../../make/jobs/work-directory.ts'
import { createGuard } from '../remote/ssrf-guard.ts'
import { parseJson } from '../sites/json.ts'
import type { ExtractPage } from '../sites/site.ts'
import { readAnswer } from './read-answer.ts'
import { runYtdlp } from './run-ytdlp.ts'
import { ytdlpFailure } from './ytdlp-failure.ts'

/** Each run is a Python of 100 MB for some seconds. One token gets half of the slots, because its pages may be slow. */
const AT_ONCE = { atOnce: 2, waiting: 16, waitMs: 15_000, perKey: { atOnce: 1, waiting: 8 } }

/** Throws site_login_required, unsupported_site_content, source_forbidden, source_fetch_failed, duration_exceeded, busy, queue_full. */
export function createExtractPage(
  { config, tools, work }: { config: Pick<Config, 'source' | 'egress'>; tools: MediaTools; work: WorkDirectory },
  program: { path: string; cookies: string | undefined },
): ExtractPage {
  const slots = createSlots(AT_ONCE, busy)
  const { maxSeconds } = config.source
  const guard = createGuard(config.egress)
  return (address, { key, signal, endsAt, maxBytes }) =>
    slots.run(
      async () => {
        const url = guard.parseUrl(address)
        const directory = await work.newDirectory()
        try {
          const options = { ...program, guard, limiters: tools.limiters, maxSeconds, maxBytes }
          const wallSeconds = Math.max(0.001, (endsAt - performance.now()) / 1000)
          const ended = await runYtdlp(options, url.href, { directory, signal, wallSeconds })
          if (ended.outcome.state !== 'done') throw ytdlpFailure(ended, url.hostname, { maxSeconds, maxBytes })
          const answer = parseJson(ended.outcome.stdout)
          if (answer === undefined) throw ytdlpFailure(ended, url.hostname, { maxSeconds, maxBytes })
          const found = readAnswer(answer, url)
          if (found) return found
          throw apiError('unsupported_site_content', { details: { site: url.hostname } })
        } finally {
          await rm(directory, { recursive: true, force: true })
        }
      },
      { key, signal },
    )
}
