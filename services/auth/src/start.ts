import type { Logger } from '@services/common/logger'
import { readSettings } from '@services/common/start-up'
import { type Config, readConfig } from './config.ts'

/** Which setting changes a port that is taken. */
export const portVariables = ({ server, telemetry }: Config): Record<number, string> => ({
  [telemetry.prometheus.port]: 'AUTH_OTEL_EXPORTER_PROMETHEUS_PORT',
  [server.port]: 'AUTH_PORT',
})

export function startUp(how?: { toStderr?: boolean }) {
  const started = readSettings('auth', readConfig, how)
  reportGaps(started)
  return started
}

/** Whoever signs in that way is refused; all else works, so that the service starts. */
export function reportGaps({ config, log }: { config: Config; log: Logger }): void {
  for (const gap of config.gaps)
    log.error({ gap }, 'switched on but without its credentials, and refused where it is used')
}

/** For what serves the public: on a developer's machine everybody has one address. */
export function warnOfMissingLimits({ limits, server }: Config, log: Logger): void {
  if (!limits.header && !server.trustSbForwardedFor) {
    log.warn('no trusted address header is set (AUTH_RATE_LIMIT_HEADER): requests are not limited per client address')
  }
}
