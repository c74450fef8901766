import { readSettings } from '@services/common/process/read-settings'
import type { Logger } from '@services/common/telemetry/logger'
import { settingsToReview } from './config/review.ts'
import { type Config, readConfig } from './config.ts'

export function startUp(how?: { toStderr?: boolean }) {
  const started = readSettings('auth', readConfig, how)
  reportGaps(started)
  return started
}

/** Logs enabled features without credentials; the service starts, because everything else works. */
export function reportGaps({ config, log }: { config: Config; log: Logger }): void {
  for (const gap of config.gaps) log.error({ gap }, 'enabled feature lacks credentials: requests for it are refused')
}

/** Logs unsafe settings of a public service; `dev`, where all callers share an address, does not. */
export function warnOfOpenSettings(config: Config, log: Logger): void {
  const { limits, server } = config
  if (!limits.header && !server.trustSbForwardedFor) {
    log.warn('no trusted address header is set (AUTH_RATE_LIMIT_HEADER): requests are not limited per client address')
  }
  const settings = settingsToReview(config)
  if (settings.length > 0) log.warn({ settings }, 'settings to review')
}
