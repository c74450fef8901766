import { parseArgs } from 'node:util'
import { openDatabase } from '@services/common/database'
import { migrate, migrationStatus, pendingSql } from '@services/common/migrate'
import { stopOnSignal } from '@services/common/shutdown'
import { type DB, TABLES } from './db/tables.ts'
import { migrationsOf, openDeps } from './deps.ts'
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
  version: async () => void process.stdout.write(`${VERSION}\n`),
}

const run = values.help ? undefined : COMMANDS[command]
if (run) await run()
else {
  const asked = values.help || command === ''
  ;(asked ? process.stdout : process.stderr).write(asked ? HELP : `unknown command: ${command}\n\n${HELP}`)
  process.exitCode = asked ? 0 : 64
}

async function runWorker() {
  const { config, log } = startUp()
  const deps = await openDeps({ ...config, server: { ...config.server, workersEnabled: true } }, log)
  const stopWorker = await startWorker(deps)
  log.info('worker started')
  stopOnSignal(log, async () => {
    await deps.close()
    stopWorker()
  })
}

async function runMigrate() {
  await withMigrations(async (migrations, log) => {
    if (!values['dry-run']) return migrate(migrations, log)
    for (const { name, sql } of await pendingSql(migrations)) process.stdout.write(`-- ${name}\n${sql}\n`)
  })
}

async function printStatus() {
  await withMigrations(async (migrations) => {
    for (const { name, executedAt } of await migrationStatus(migrations)) {
      process.stdout.write(`${executedAt?.toISOString() ?? 'pending'.padEnd(24)}  ${name}\n`)
    }
  })
}

async function withMigrations(
  run: (migrations: ReturnType<typeof migrationsOf>, log: ReturnType<typeof startUp>['log']) => Promise<void>,
) {
  const { config, log } = startUp()
  const { db } = openDatabase<DB>({ ...config.database, applicationName: 'auth migrate', log, tables: TABLES })
  try {
    await run(migrationsOf(db, config.database.namespace), log)
  } finally {
    await db.destroy()
  }
}

async function checkConfig() {
  startUp()
  process.stdout.write('the configuration is complete\n')
}
