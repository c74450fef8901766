import { readSettings } from '@services/common/process/read-settings'
import type { Logger } from '@services/common/telemetry/logger'
import { settingFaults, settingsToRenew } from './config/faults.ts'
import { settingsToReview } from './config/review.ts'
import { type Config, readConfig } from './config.ts'

export function startUp(how?: { toStderr?: boolean; quietly?: boolean }) {
  const started = readSettings('auth', readConfig, how)
  if (!how?.quietly) reportFaults(started)
  return started
}

/** Logs enabled features that cannot work; the service starts, because everything else does. */
export function reportFaults({ config, log }: { config: Config; log: Logger }): void {
  const now = new Date()
  for (const gap of config.gaps) log.error({ gap }, 'enabled feature lacks credentials: requests for it are refused')
  for (const fault of settingFaults(config, now)) log.error({ fault }, 'setting cannot work')
  for (const setting of settingsToRenew(config, now)) log.warn({ setting }, 'setting expires soon')
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
