import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { openDatabase } from '@services/common/database'
import { migrationStatus, pendingSql } from '@services/common/migrate'
import { inOrder, stopOnSignal } from '@services/common/shutdown'
import { explainStartFailure } from '@services/common/start-failure'
import { startTelemetry } from '@services/common/telemetry'
import type { Kysely } from 'kysely'
import { type DB, TABLES } from './db/tables.ts'
import { migrateAll, openDeps, withMigrations } from './deps.ts'
import { startUp } from './start.ts'
import { createCommand, listCommand, revokeCommand } from './tokens/token-commands.ts'
import { VERSION } from './version.ts'
import { startWorker } from './worker.ts'

const HELP = `media <command>

  serve                  run the service
  worker                 transcode and clean up in a process of its own
  migrate                apply pending migrations
  migrate status         list migrations and when they were applied
  migrate --dry-run      print the SQL that would be applied
  config check           check the settings without starting
  tokens create          make an API token; it is shown this once
      --name NAME          what it is for
      --scopes LIST        of write, read, delete, admin; write,read,delete if absent
      --limits LIST        other limits than the service's, as in upload=1000,import=500,read=5000
      --expires DURATION   as in 720h; never if absent
  tokens list            list tokens, without the secret part
  tokens revoke ID       end a token at once
      --json               print JSON
  version                print the version
`

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    'dry-run': { type: 'boolean' },
    name: { type: 'string' },
    scopes: { type: 'string' },
    limits: { type: 'string' },
    expires: { type: 'string' },
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  },
})
const [first = '', second = '', ...rest] = positionals

const clockAndIds = { now: () => new Date(), newId: () => randomUUID() }

const COMMANDS: Record<string, () => Promise<void>> = {
  serve: async () => void (await import('./main.ts')),
  worker: runWorker,
  migrate: runMigrate,
  'migrate status': printStatus,
  'config check': checkConfig,
  'tokens create': () => runOnDatabase((db) => createCommand({ db, ...clockAndIds }, values)),
  'tokens list': () => runOnDatabase((db) => listCommand(db, values)),
  'tokens revoke': () => runOnDatabase((db) => revokeCommand({ db, ...clockAndIds }, rest[0] ?? '', values)),
  version: async () => void process.stdout.write(`${VERSION}\n`),
}

const run = values.help ? undefined : COMMANDS[[first, second].filter(Boolean).join(' ')]
if (run) await run().catch(fail)
else {
  const asked = values.help || first === ''
  const complaint = asked ? '' : `unknown command: ${positionals.join(' ')}\n\n`
  ;(asked ? process.stdout : process.stderr).write(complaint + HELP)
  process.exitCode = asked ? 0 : 64
}

/** What an operator can mend is said in words; the rest is a bug and shows where it is. */
function fail(error: unknown): never {
  process.stderr.write(`${explainStartFailure(error, {}) ?? (error as Error).stack}\n`)
  process.exit(1)
}

async function runWorker() {
  const { config, log } = startUp()
  const stopTelemetry = await startTelemetry({ service: 'media', version: VERSION, ...config.telemetry })
  const alone = { enabled: true, processes: 1, concurrency: config.worker.concurrencyAlone }
  const deps = await openDeps({ ...config, worker: { ...config.worker, ...alone } }, log)
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

async function runOnDatabase(work: (db: Kysely<DB>) => Promise<void>) {
  const { config, log } = startUp()
  const { db } = openDatabase<DB>({ ...config.database, applicationName: 'media cli', log, tables: TABLES })
  try {
    await work(db)
  } finally {
    await db.destroy()
  }
}

async function checkConfig() {
  startUp()
  process.stdout.write('the configuration is complete\n')
}
