import { access, constants } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { ConfigError } from '@services/common/config/variables'
import type { Logger } from '@services/common/telemetry/logger'
import type { Config } from '../../config.ts'
import { type MediaTools, requireExecutable } from '../../ffmpeg/binaries.ts'
import { runConfined } from '../../ffmpeg/run-confined.ts'

export async function requireYtdlp({ path, cookies }: Config['ytdlp']): Promise<void> {
  const reportAs = (problem: string) => (cause: NodeJS.ErrnoException) => {
    throw new ConfigError([`${problem} (${cause.code})`], cause)
  }
  if (path) await requireExecutable(path).catch(reportAs(`MEDIA_YTDLP_PATH: ${path} cannot be run`))
  if (path && cookies)
    await access(cookies, constants.R_OK).catch(reportAs(`MEDIA_YTDLP_COOKIES: ${cookies} cannot be read`))
}

/** Sites change and yt-dlp follows within weeks; an older one fails on most of them. */
const OLD_AFTER_DAYS = 180

/** Logs the version of yt-dlp and warns when it does not start or is old. Takes seconds, so the start does not wait. */
export async function checkYtdlp(
  path: string,
  { limiters, log, now, signal }: { limiters: MediaTools['limiters']; log: Logger; now: Date; signal: AbortSignal },
): Promise<void> {
  const limits = { wallSeconds: 30, cpuSeconds: 30, memoryBytes: 4 * 1024 ** 3, fileBytes: 64 * 1024 ** 2 }
  const outcome = await runConfined(path, ['--ignore-config', '--version'], {
    ...{ limits, limiters, cwd: tmpdir(), signal },
  }).catch((error: Error) => ({ state: 'failed' as const, stdout: '', error: error.message }))
  if (signal.aborted) return
  // Versions are dates, such as 2026.08.19.
  const version = 'stdout' in outcome ? outcome.stdout.trim().slice(0, 40) : ''
  const [, year, month, day] = /^(\d{4})\.(\d{2})\.(\d{2})/.exec(version) ?? []
  if (!year) return log.error({ ytdlp: path, outcome }, 'yt-dlp reports no version')
  const days = Math.floor((now.getTime() - Date.UTC(Number(year), Number(month) - 1, Number(day))) / 86_400_000)
  const facts = { ytdlp: path, version, days }
  if (days > OLD_AFTER_DAYS) log.warn(facts, 'yt-dlp is older than 180 days: many sites have changed since')
  else log.info(facts, 'yt-dlp found')
}
