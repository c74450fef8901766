import type { Logger } from '@services/common/telemetry/logger'
import type { Config } from '../../config.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import type { WorkDirectory } from '../../make/jobs/work-directory.ts'
import type { ExtractPage } from '../sites/site.ts'
import { checkYtdlp, requireYtdlp } from './check-ytdlp.ts'

/** Returns undefined without MEDIA_YTDLP_PATH. Throws when the program cannot be run or the cookies cannot be read. */
export async function openYtdlp(
  deps: { config: Config; tools: MediaTools; work: WorkDirectory; log: Logger },
  now: Date,
  signal: AbortSignal,
): Promise<ExtractPage | undefined> {
  const { config, log } = deps
  const { path, cookies } = config.ytdlp
  if (!path) return undefined
  await requireYtdlp(config.ytdlp)
  const { limiters } = deps.tools
  if (limiters.sandbox?.kind !== 'bwrap') {
    log.warn('bwrap does not work here: only its own --proxy option keeps yt-dlp from internal addresses')
  }
  void checkYtdlp(path, { limiters, log, now, signal })
  let opened: Promise<ExtractPage> | undefined
  return async (...args) => {
    opened ??= import('./extract-page.ts').then(({ createExtractPage }) => createExtractPage(deps, { path, cookies }))
    return (await opened)(...args)
  }
}
