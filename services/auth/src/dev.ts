// `pnpm dev`: the service with embedded defaults. Settings given in the environment win: a DATABASE_URL means no embedded
// PostgreSQL, an SMTP host means no inbox.
import { fileURLToPath } from 'node:url'
import { readEnvFile } from '@services/common/config'
import { announceReady, stopWithParent } from '@services/common/dev/dev-child'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { startInbox } from '@services/common/dev/inbox'
import { createLogger } from '@services/common/logger'
import { explainStartFailure } from '@services/common/start-failure'
import { readConfig } from './config.ts'
import { serve } from './serve.ts'

const file = readEnvFile('.env')
const env = { ...file, ...process.env }
const given = (name: string) => env[`AUTH_${name}`] || env[name]
const stops: (() => Promise<void>)[] = []

async function start() {
  const port = given('PORT') ?? '8081'
  const defaults: Record<string, string> = {
    AUTH_SITE_URL: 'http://localhost:3000',
    AUTH_API_EXTERNAL_URL: `http://127.0.0.1:${port}`,
    AUTH_API_HOST: '127.0.0.1',
    AUTH_JWT_SECRET: 'development-only-secret-of-32-bytes-or-more',
    AUTH_SMTP_ADMIN_EMAIL: 'auth@example.com',
    AUTH_SMTP_MAX_FREQUENCY: '1',
    AUTH_RATE_LIMIT_EMAIL_SENT: '100000',
    AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    AUTH_LOG_LEVEL: 'warn',
  }
  const lines: string[] = []
  if (!given('DATABASE_URL')) {
    const dataDir = fileURLToPath(new URL('../../../.data/auth/postgres', import.meta.url))
    const postgres = await startEmbeddedPostgres({ dataDir, database: 'auth', onUnexpectedExit })
    stops.push(postgres.stop)
    defaults.AUTH_DATABASE_URL = postgres.url
  }
  if (!given('SMTP_HOST')) {
    const inbox = await startInbox({
      host: '127.0.0.1',
      smtpPort: Number(env.INBOX_SMTP_PORT || 1025),
      webPort: Number(env.INBOX_WEB_PORT || 8025),
    })
    stops.push(inbox.close)
    defaults.AUTH_SMTP_HOST = '127.0.0.1'
    defaults.AUTH_SMTP_PORT = String(inbox.smtpPort)
    lines.push(`inbox    ${inbox.webUrl}`)
  }
  const { config, warnings } = readConfig(process.env, { ...defaults, ...file })
  const log = createLogger({ name: 'auth', ...config.log })
  for (const warning of warnings) log.warn(warning)
  const service = await serve(config, log)
  stops.push(service.stop)
  const base = config.server.externalUrl
  announceReady('auth', [
    `base URL ${base}`,
    `docs     ${base}/docs`,
    ...lines,
    `try      curl ${base}/signup -d '{"email":"ada@example.com","password":"correct horse"}'`,
  ])
}

/** Without its database nothing could be finished or given back: a stop in good order would only log that. */
function onUnexpectedExit(message: string) {
  process.stderr.write(`${message}. Stopping; the next start recovers the data.\n`)
  process.exit(1)
}

let isStopping = false
async function stop(code: number) {
  if (isStopping) return
  isStopping = true
  for (const end of stops.toReversed()) await end()
  process.exit(code)
}

process.once('SIGINT', () => stop(0))
process.once('SIGTERM', () => stop(0))
stopWithParent(() => stop(0))
try {
  await start()
} catch (error) {
  const expected = explainStartFailure(error, { [Number(given('PORT') ?? 8081)]: 'AUTH_PORT' })
  process.stderr.write(`${expected ?? (error instanceof Error ? error.stack : error)}\n`)
  stop(1)
}
