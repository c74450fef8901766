import { parseArgs } from 'node:util'
import { variablesTable } from '@services/common/config'
import { migrationStatus, pendingSql } from '@services/common/migrate'
import { inOrder, stopOnSignal } from '@services/common/shutdown'
import { explainStartFailure } from '@services/common/start-failure'
import { startTelemetry } from '@services/common/telemetry'
import { variables } from './config.ts'
import { migrateAll, openDeps, withMigrations } from './deps.ts'
import { importSigningKeys } from './jwks/signing-keys.ts'
import { mailKindNamed, previewMail } from './mail/mail-preview.ts'
import { ALL_KINDS, openMailTemplates } from './mail/mail-templates.ts'
import { testMail } from './mail/mail-test.ts'
import { openTemplateSources } from './mail/template-sources.ts'
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
  mail preview <kind>    print a mail with made-up variables: --html or --text alone, --locale de
  mail test <address>    send a mail through the configured server and say what fails
  version                print the version
`

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    'dry-run': { type: 'boolean' },
    html: { type: 'boolean' },
    text: { type: 'boolean' },
    locale: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
})
/** What follows `mail preview` and `mail test` is not part of the command's name. */
const isMailCommand = positionals[0] === 'mail' && positionals.length === 3
const command = (isMailCommand ? positionals.slice(0, 2) : positionals).join(' ')
const argument = positionals[2] ?? ''

const COMMANDS: Record<string, () => Promise<void>> = {
  serve: async () => void (await import('./main.ts')),
  worker: runWorker,
  migrate: runMigrate,
  'migrate status': printStatus,
  'config check': checkConfig,
  'config table': async () => void process.stdout.write(`${variablesTable(variables, 'AUTH_')}\n`),
  ...(isMailCommand ? { 'mail preview': previewOneMail, 'mail test': sendTestMail } : {}),
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
  openTemplateSources(config)
  process.stdout.write('the configuration is complete\n')
}

async function previewOneMail() {
  const kind = mailKindNamed(argument)
  if (!kind) {
    process.stderr.write(`no such mail: ${argument}; there are ${ALL_KINDS.join(', ')}\n`)
    process.exitCode = 64
    return
  }
  const { config, log } = startUp()
  const templates = openMailTemplates({ config, log, now: () => new Date() })
  const { subject, html, text } = await previewMail(templates, kind, values.locale)
  const whole = `Subject: ${subject}\n\n${text}\n${html}`
  process.stdout.write(values.html ? html : values.text ? text : whole)
}

async function sendTestMail() {
  const { config } = startUp()
  const result = await testMail(config.smtp, argument)
  if (result.sent) return void process.stdout.write(`sent, Message-ID <${result.messageId}>\n`)
  process.stderr.write(`not sent: ${result.problem}\n${result.remedy}\n`)
  process.exitCode = 1
}
