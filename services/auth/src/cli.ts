import { parseArgs } from 'node:util'
import { variablesTable } from '@services/common/config'
import { migrationStatus, pendingSql } from '@services/common/migrate'
import { inOrder, stopOnSignal } from '@services/common/shutdown'
import { explainStartFailure } from '@services/common/start-failure'
import { startTelemetry } from '@services/common/telemetry'
import { variables } from './config.ts'
import { migrateAll, openDeps, withMigrations } from './deps.ts'
import { importSigningKeys } from './jwks/signing-keys.ts'
import { startUp } from './start.ts'
import { VERSION } from './version.ts'
import { startWorker } from './worker.ts'

const HELP = `auth <command>

  serve                  run the service
  worker                 deliver mail and do housekeeping in a process of its own
  migrate                apply pending migrations
  migrate status         list migrations and when they were applied
  migrate --dry-run      print the SQL that would be applied
  config check           check the settings without starting
  config table           print all variables as the table of the README
  version                print the version
`

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { 'dry-run': { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
})
const command = positionals.join(' ')

const COMMANDS: Record<string, () => Promise<void>> = {
  serve: async () => void (await import('./main.ts')),
  worker: runWorker,
  migrate: runMigrate,
  'migrate status': printStatus,
  'config check': checkConfig,
  'config table': async () => void process.stdout.write(`${variablesTable(variables, 'AUTH_')}\n`),
  version: async () => void process.stdout.write(`${VERSION}\n`),
}

const run = values.help ? undefined : COMMANDS[command]
if (run) await run().catch(fail)
else {
  const asked = values.help || command === ''
  ;(asked ? process.stdout : process.stderr).write(asked ? HELP : `unknown command: ${command}\n\n${HELP}`)
  process.exitCode = asked ? 0 : 64
}

/** What an operator can mend is said in words; the rest is a bug and shows where it is. */
function fail(error: unknown): never {
  process.stderr.write(`${explainStartFailure(error, {}) ?? (error as Error).stack}\n`)
  process.exit(1)
}

async function runWorker() {
  const { config, log } = startUp()
  const stopTelemetry = await startTelemetry({ service: 'auth', version: VERSION, ...config.telemetry })
  const deps = await openDeps({ ...config, server: { ...config.server, workersEnabled: true } }, log)
  const stopWorker = await startWorker(deps)
  log.info('worker started')
  stopOnSignal(log, () => inOrder(log, [stopWorker, deps.close, stopTelemetry]))
}

async function runMigrate() {
  const { config, log } = startUp()
  if (!values['dry-run']) return migrateAll(config, log)
  await withMigrations(config, log, async (migrations) => {
    for (const { name, sql } of await pendingSql(migrations)) process.stdout.write(`-- ${name}\n${sql}\n`)
  })
}

async function printStatus() {
  const { config, log } = startUp()
  await withMigrations(config, log, async (migrations) => {
    for (const { name, executedAt } of await migrationStatus(migrations)) {
      process.stdout.write(`${executedAt?.toISOString() ?? 'pending'.padEnd(24)}  ${name}\n`)
    }
  })
}

async function checkConfig() {
  const { config } = startUp()
  await importSigningKeys(config.jwt)
  process.stdout.write('the configuration is complete\n')
}
