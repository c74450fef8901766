import { mkdirSync, writeFileSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { dirname, join } from 'node:path'
import { type Environment, readEnvFile } from '../config/variables.ts'
import { explainStartFailure, type PortSettings, portVariables } from '../process/explain-start-failure.ts'
import { createLogger, type Logger, type LogLevel } from '../telemetry/logger.ts'
import { announceReady, stopWithParent } from './dev-child.ts'
import { COMPILE_CACHE, commandLineOf, dataRoot, describeDev, PORTS, wantsHelp } from './dev-settings.ts'
import { rememberDataRoot } from './elsewhere.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'
import { type Addresses, announceStop, claimDataDir, publishAddresses, releaseDataDir } from './running.ts'

export interface Dev {
  /** Environment and `.env`. */
  env: Environment
  /** Reads a setting by its prefixed or bare name; empty means unset. */
  given(name: string): string | undefined
  port: string
  /** Data folder: `.data/<name>` of the repository, or `<name>` in DEV_DATA_DIR. */
  dataDir: string
  /** Run in reverse order at the end. */
  stops: (() => Promise<void>)[]
  /** Starts PostgreSQL unless DATABASE_URL is given; resolves to the setting that names it. */
  startPostgres(): Promise<Environment>
  /** Reads the settings, which override `defaults`, and stores them for `cli:dev`. */
  settle<Config extends PortSettings & { log: { level: LogLevel; file?: string | undefined } }>(
    readConfig: (environment: Environment, file: Environment) => { config: Config; warnings: string[] },
    defaults: Environment,
  ): { config: Config; log: Logger }
  commandLine: string
}

type Started = Addresses & { lines: string[] }

/** The body of every dev.ts: runs a service on defaults until a signal, its parent's end or a failed start. */
export async function runDev(name: 'auth' | 'media', start: (dev: Dev) => Promise<Started>): Promise<void> {
  if (wantsHelp(process.argv)) return void process.stdout.write(describeDev())
  enableCompileCache(COMPILE_CACHE)
  const prefix = `${name.toUpperCase()}_`
  const file = readEnvFile('.env')
  const env = { ...file, ...process.env }
  const given = (variable: string) => env[prefix + variable] || env[variable]
  const dataDir = join(dataRoot(env), name)
  const ports: Record<number, string> = {}
  const dev: Dev = {
    env,
    given,
    port: given('PORT') ?? String(PORTS[name].usual),
    dataDir,
    commandLine: commandLineOf(name, env),
    stops: [],
    async startPostgres() {
      if (given('DATABASE_URL')) return {}
      const { url, stop: stopPostgres } = await startEmbeddedPostgres({
        dataDir: join(dataDir, 'postgres'),
        database: name,
        onUnexpectedExit: leave,
      })
      dev.stops.push(stopPostgres)
      return { [`${prefix}DATABASE_URL`]: url }
    },
    settle(readConfig, defaults) {
      const { config, warnings } = readConfig(process.env, { ...defaults, ...file })
      for (const warning of warnings) process.stderr.write(`${warning}\n`)
      Object.assign(ports, portVariables(prefix, config))
      writeSettings(join(dataDir, 'dev.env'), prefix, { ...defaults, ...file, ...process.env })
      return { config, log: createLogger({ name, ...config.log }) }
    },
  }
  let isStopping = false
  const stop = async (code: number) => {
    if (isStopping) return
    isStopping = true
    await announceStop(dataDir).catch(() => {})
    for (const end of dev.stops.toReversed()) await end()
    process.exit(code)
  }
  process.once('SIGINT', () => stop(0))
  process.once('SIGTERM', () => stop(0))
  stopWithParent(() => stop(0))
  try {
    await claimDataDir(dataDir, name, PORTS[name].variable)
    await rememberDataRoot(dataRoot(env))
    dev.stops.push(() => releaseDataDir(dataDir))
    const { lines, ...addresses } = await start(dev)
    await publishAddresses(dataDir, addresses)
    announceReady(name, lines)
  } catch (error) {
    process.stderr.write(`${explainStartFailure(error, ports) ?? describeFailure(error)}\n`)
    await stop(1)
  }
}

/** Exits at once: without its database a service cannot stop in order. */
function leave(because: string): never {
  process.stderr.write(`${because}. Stopping; the next start recovers the data.\n`)
  process.exit(1)
}

/** Describes a failure by its message, and a bug of ours by its stack. */
function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const isBug = [TypeError, ReferenceError, SyntaxError, RangeError].some((kind) => error instanceof kind)
  return (isBug && error.stack) || error.message
}

/** Writes the settings for the script `cli:dev`; its terminal's variables take precedence. */
function writeSettings(path: string, prefix: string, settings: Environment): void {
  const lines = Object.entries(settings).flatMap(([variable, value = '']) => {
    const quote = ["'", '"', '`'].find((each) => !value.includes(each))
    return variable.startsWith(prefix) && quote ? [`${variable}=${quote}${value}${quote}\n`] : []
  })
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, lines.join(''), { mode: 0o600 })
}
