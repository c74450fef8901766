import { ConfigError, type Environment, readEnvFile } from '../config/variables.ts'
import { createLogger, type Logger, type LogLevel } from '../telemetry/logger.ts'

interface LoggedConfig {
  log: { level: LogLevel; file?: string | undefined }
}

/**
 * Reads the settings and logs their warnings; prints all problems and exits with 78 (EX_CONFIG of sysexits.h) if there
 * are any. Commands log `toStderr`, because their stdout is their result. One that prints the warnings itself reads
 * `quietly`.
 */
export function readSettings<Config extends LoggedConfig>(
  name: string,
  readConfig: (environment: Environment, file: Environment) => { config: Config; warnings: string[] },
  { toStderr = false, quietly = false }: { toStderr?: boolean; quietly?: boolean } = {},
): { config: Config; log: Logger; warnings: string[] } {
  try {
    const { config, warnings } = readConfig(process.env, readEnvFile('.env'))
    const log = createLogger({ name, ...config.log, toStderr })
    if (!quietly) for (const warning of warnings) log.warn(warning)
    return { config, log, warnings }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(78)
  }
}
