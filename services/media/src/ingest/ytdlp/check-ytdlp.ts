import { tmpdir } from 'node:os'
import type { Logger } from '@services/common/logger'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { runConfined } from '../../ffmpeg/run-confined.ts'

/** Sites change, and it follows within weeks: what is older fails on most of them. */
const OLD_AFTER_DAYS = 180

/**
 * Says in the log which yt-dlp there is, and warns of one that does not start or is old. Takes seconds, so nobody waits for it.
 * Its versions are dates, such as 2026.08.19.
 */
export async function checkYtdlp(
  path: string,
  { limiters, log, now, signal }: { limiters: MediaTools['limiters']; log: Logger; now: Date; signal: AbortSignal },
): Promise<void> {
  const limits = { wallSeconds: 30, cpuSeconds: 30, memoryBytes: 4 * 1024 ** 3, fileBytes: 64 * 1024 ** 2 }
  const outcome = await runConfined(path, ['--ignore-config', '--version'], {
    ...{ limits, limiters, cwd: tmpdir(), signal },
  }).catch((error: Error) => ({ state: 'failed' as const, stdout: '', error: error.message }))
  if (signal.aborted) return
  const version = 'stdout' in outcome ? outcome.stdout.trim().slice(0, 40) : ''
  const [, year, month, day] = /^(\d{4})\.(\d{2})\.(\d{2})/.exec(version) ?? []
  if (!year) return log.error({ ytdlp: path, outcome }, 'yt-dlp does not tell its version')
  const days = Math.floor((now.getTime() - Date.UTC(Number(year), Number(month) - 1, Number(day))) / 86_400_000)
  const facts = { ytdlp: path, version, days }
  if (days > OLD_AFTER_DAYS) log.warn(facts, 'yt-dlp is older than 180 days: many sites will have changed since')
  else log.info(facts, 'yt-dlp found')
}
