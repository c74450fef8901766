import { ConfigError, readEnvFile } from '@services/common/config'
import { createLogger, type Logger } from '@services/common/logger'
import { type Config, readConfig } from './config.ts'

/** Which setting changes a port that is taken. */
export const portVariables = ({ server, telemetry }: Config): Record<number, string> => ({
  [telemetry.prometheus.port]: 'MEDIA_OTEL_EXPORTER_PROMETHEUS_PORT',
  [server.port]: 'MEDIA_PORT',
})

/**
 * What every entry point does first: reads the settings, or lists all that is wrong with them and ends the process with
 * code 78 (EX_CONFIG of sysexits.h).
 */
export function startUp(): { config: Config; log: Logger } {
  try {
    const { config, warnings } = readConfig(process.env, readEnvFile('.env'))
    const log = createLogger({ name: 'media', ...config.log })
    for (const warning of warnings) log.warn(warning)
    return { config, log }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(78)
  }
}
