import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Environment, readEnvFile } from '../config.ts'
import { createLogger, type Logger, type LogLevel } from '../logger.ts'
import { explainStartFailure } from '../start-failure.ts'
import { announceReady, stopWithParent } from './dev-child.ts'

/** What the dev.ts of a service works with. */
export interface Dev {
  /** Environment and `.env`. */
  env: Environment
  /** A setting under its prefixed or its bare name; empty means unset. */
  given(name: string): string | undefined
  port: string
  /** What this service keeps between two starts: `.data/<name>` of the repository, or `<name>` in DEV_DATA_DIR. */
  dataDir: string
  /** Run in reverse order at the end. */
  stops: (() => Promise<void>)[]
  /** Ends at once, in one sentence. Without its database nothing could be finished or given back in good order. */
  leave(because: string): void
  /** Reads the settings; what is given wins over these defaults. Warnings are logged. Kept for the command line too. */
  settle<Config extends { log: { level: LogLevel; file?: string | undefined } }>(
    readConfig: (environment: Environment, file: Environment) => { config: Config; warnings: string[] },
    defaults: Environment,
  ): { config: Config; log: Logger }
  /** What to type, at the root of the repository, for the command line with the settings of this very service. */
  commandLine: string
}

/**
 * The body of every dev.ts: starts the service with embedded defaults, prints the lines that `start` answers, and stops
 * everything on a signal, when the parent is gone or when the start fails.
 */
export async function runDev(
  { name, prefix, port }: { name: string; prefix: string; port: string },
  start: (dev: Dev) => Promise<string[]>,
): Promise<void> {
  const file = readEnvFile('.env')
  const env = { ...file, ...process.env }
  const given = (variable: string) => env[prefix + variable] || env[variable]
  const dataDir = join(resolve(env.DEV_DATA_DIR || fileURLToPath(new URL('../../../../.data', import.meta.url))), name)
  const dev: Dev = {
    env,
    given,
    port: given('PORT') ?? port,
    dataDir,
    commandLine: `npx -y pnpm@12 --filter ./services/${name} cli:dev`,
    stops: [],
    leave(because) {
      process.stderr.write(`${because}. Stopping; the next start recovers the data.\n`)
      process.exit(1)
    },
    settle(readConfig, defaults) {
      const { config, warnings } = readConfig(process.env, { ...defaults, ...file })
      const log = createLogger({ name, ...config.log })
      for (const warning of warnings) log.warn(warning)
      writeSettings(join(dataDir, 'dev.env'), prefix, { ...defaults, ...file, ...process.env })
      return { config, log }
    },
  }
  let isStopping = false
  const stop = async (code: number) => {
    if (isStopping) return
    isStopping = true
    for (const end of dev.stops.toReversed()) await end()
    process.exit(code)
  }
  process.once('SIGINT', () => stop(0))
  process.once('SIGTERM', () => stop(0))
  stopWithParent(() => stop(0))
  try {
    announceReady(name, await start(dev))
  } catch (error) {
    const expected = explainStartFailure(error, { [Number(dev.port)]: `${prefix}PORT` })
    process.stderr.write(`${expected ?? (error instanceof Error ? error.stack : error)}\n`)
    await stop(1)
  }
}

/** For the script `cli:dev`; what is set in its terminal wins. */
function writeSettings(path: string, prefix: string, settings: Environment): void {
  const lines = Object.entries(settings).flatMap(([variable, value = '']) => {
    const quote = ["'", '"', '`'].find((each) => !value.includes(each))
    return variable.startsWith(prefix) && quote ? [`${variable}=${quote}${value}${quote}\n`] : []
  })
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, lines.join(''), { mode: 0o600 })
}
