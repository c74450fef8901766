// Commands that every service has: serve, worker, migrate, config, version. All differences between services are
// members of `ServiceParts`. The command line itself: command-line.ts. Tests: test/cli.test.ts of each service.
import { ConfigError, type Variables, variablesTable } from '../config/variables.ts'
import { migrationStates, pendingMigrations } from '../migrations/migrate.ts'
import type { Logger } from '../telemetry/logger.ts'
import { startTelemetry, type TelemetryOptions } from '../telemetry/start-sdk.ts'
import { type Command, CommandFailure, command, printResult } from './command-line.ts'
import { explainStartFailure, type PortSettings, portVariables } from './explain-start-failure.ts'
import { boundMemory } from './limit-heap.ts'
import { migrateAll, type ServiceSchema, withMigrations } from './service-database.ts'
import { inOrder, stopOnSignal } from './shutdown.ts'

interface Settings extends PortSettings {
  database: Parameters<typeof migrateAll>[1]['database']
  telemetry: Omit<TelemetryOptions, 'service' | 'version' | 'log'>
}

interface ServiceParts<Config extends Settings> {
  name: string
  prefix: string
  version: string
  variables: Variables
  workerSummary: string
  startUp(how?: { toStderr?: boolean; quietly?: boolean }): { config: Config; log: Logger; warnings: string[] }
  /** Runs main.ts, which may start several processes. */
  serve(): Promise<unknown>
  /** Checks more than the settings themselves. Problems, notes and further warnings are a sentence each. */
  checkConfig(config: Config): Promise<{ problems: string[]; warnings?: string[]; notes?: string[] }>
  /** Lists valid settings that an operator should review, one line each. */
  review?(config: Config): string[]
  schema: ServiceSchema
  /** Starts the worker, even where the service runs workers itself; resolves to its stop steps, in order. */
  startWorker(config: Config, log: Logger): Promise<(() => unknown)[]>
}

export function serviceCommands<Config extends Settings>(service: ServiceParts<Config>): Command[] {
  return [
    command({ name: 'serve', summary: 'run the service', run: service.serve }),
    command({ name: 'worker', summary: service.workerSummary, run: () => runWorker(service) }),
    command({
      name: 'migrate',
      summary: 'apply pending migrations',
      options: { 'dry-run': { meaning: 'print the SQL that would be applied' } },
      run: ({ options, json }) => (options['dry-run'] ? printPending(service, json) : runMigrate(service, json)),
    }),
    command({
      name: 'migrate status',
      summary: 'list migrations and when they were applied',
      run: ({ json }) => printStatus(service, json),
    }),
    command({
      name: 'config check',
      summary: 'check the settings without starting',
      run: ({ json }) => checkConfig(service, json),
    }),
    command({
      name: 'config table',
      summary: 'print all variables as a Markdown table',
      run: ({ json }) => printResult(json, listVariables(service), variablesTable(service.variables, service.prefix)),
    }),
    command({
      name: 'version',
      summary: 'print the version',
      run: ({ json }) => printResult(json, { version: service.version }, service.version),
    }),
  ]
}

type Service = ServiceParts<Settings>

/** Lists every problem at once. Warnings belong to the result, whatever the log level. */
async function checkConfig<Config extends Settings>(service: ServiceParts<Config>, json: boolean): Promise<void> {
  const { config, warnings: ofNames } = service.startUp({ toStderr: true, quietly: true })
  const { problems, warnings: more = [], notes = [] } = await service.checkConfig(config)
  const warnings = [...ofNames, ...more]
  if (problems.length > 0) throw new ConfigError([...problems, ...warnings])
  const review = service.review?.(config) ?? []
  const listed = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : [title, ...lines.map((line) => `  - ${line}`)]
  const sections = [...listed('warnings:', warnings), ...listed('settings to review:', review)]
  const text = ['the configuration is complete', ...notes, ...sections].join('\n')
  printResult(json, { complete: true, warnings, notes, review }, text)
}

/** Lines of a ConfigError that a check throws; none if it passes. */
export async function problemsOf(check: () => unknown): Promise<readonly string[]> {
  try {
    await check()
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

async function runWorker(service: Service) {
  const { config, log } = service.startUp()
  const { name, version } = service
  const stopTelemetry = await startTelemetry({ service: name, version, ...config.telemetry, log }).catch((error) => {
    // The service on the same machine may hold the metrics port.
    const explained = explainStartFailure(error, portVariables(service.prefix, config))
    throw explained ? new CommandFailure(explained) : error
  })
  const stops = await service.startWorker(config, log)
  boundMemory()
  log.info('worker started')
  stopOnSignal(log, () => inOrder(log, [...stops, stopTelemetry]))
}

async function runMigrate(service: Service, json: boolean) {
  const { config, log } = service.startUp({ toStderr: true })
  const applied = (await withMigrations(service.schema, config, log, pendingMigrations)).map(({ name }) => name)
  // Runs with nothing pending too: the queue's tables may need an update.
  await migrateAll(service.schema, config, log)
  printResult(json, { applied }, applied.map((name) => `applied ${name}`).join('\n') || 'nothing to apply')
}

async function printPending(service: Service, json: boolean) {
  const { config, log } = service.startUp({ toStderr: true })
  const pending = await withMigrations(service.schema, config, log, pendingMigrations)
  if (json || pending.length > 0) {
    const shown = pending.map(({ name, sql, isAlone }) => ({ name, sql, alone: isAlone }))
    printResult(json, shown, shown.map(({ name, sql }) => `-- ${name}\n${sql}`).join('\n'))
  }
}

async function printStatus(service: Service, json: boolean) {
  const { config, log } = service.startUp({ toStderr: true })
  const migrations = await withMigrations(service.schema, config, log, migrationStates)
  const status = migrations.map(({ name, appliedAt, file }) => ({
    name,
    applied_at: appliedAt?.toISOString() ?? null,
    alone: file?.isAlone ?? null,
  }))
  const lines = status.map(
    ({ name, applied_at: at, alone }) => `${at ?? 'pending'.padEnd(24)}  ${name}${!at && alone ? ' (runs alone)' : ''}`,
  )
  printResult(json, status, lines.join('\n'))
}

const listVariables = ({ variables, prefix }: Service) =>
  Object.entries(variables).map(
    ([name, { type, meaning, required = false, default: fallback = null, aliases = [] }]) => ({
      name: prefix + name,
      type,
      required,
      default: fallback,
      aliases,
      meaning,
    }),
  )
