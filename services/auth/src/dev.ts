// `pnpm dev`: the service with embedded defaults. Settings given in the environment win: a DATABASE_URL means no embedded
// PostgreSQL, an SMTP host means no inbox.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { startInbox } from '@services/common/dev/inbox'
import { runDev } from '@services/common/dev/run-dev'
import { readConfig } from './config.ts'
import { generateKeySet } from './jwks/keys-command.ts'
import { serve } from './serve.ts'

await runDev(
  { name: 'auth', prefix: 'AUTH_', port: '8081' },
  async ({ env, given, port, dataDir, stops, settle, leave, commandLine }) => {
    const defaults: Record<string, string> = {
      AUTH_SITE_URL: 'http://localhost:3000',
      AUTH_API_EXTERNAL_URL: `http://127.0.0.1:${port}`,
      AUTH_API_HOST: '127.0.0.1',
      AUTH_JWT_SECRET: 'development-only-secret-of-32-bytes-or-more',
      AUTH_SMTP_ADMIN_EMAIL: 'auth@example.com',
      AUTH_SMTP_MAX_FREQUENCY: '1',
      AUTH_MAILER_SIGN_IN_LINK_MAX_FREQUENCY: '1',
      AUTH_RATE_LIMIT_EMAIL_SENT: '100000',
      AUTH_RATE_LIMIT_SMS_SENT: '100000',
      AUTH_SMS_MAX_FREQUENCY: '1',
      AUTH_SMS_MAX_PER_NUMBER: '100000',
      AUTH_SMS_MAX_PER_PREFIX: '100000',
      AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
      AUTH_LOG_LEVEL: 'warn',
    }
    // A given secret is there to verify tokens with; a key would sign them instead.
    if (!given('JWT_SECRET') && !given('JWT_KEYS')) {
      defaults.AUTH_JWT_KEYS = await ensureSigningKey(join(dataDir, 'jwt-keys.json'))
    }
    const lines: string[] = []
    if (!given('DATABASE_URL')) {
      const postgres = await startEmbeddedPostgres({
        dataDir: join(dataDir, 'postgres'),
        database: 'auth',
        onUnexpectedExit: leave,
      })
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
    const { config, log } = settle(readConfig, defaults)
    const service = await serve(config, log)
    stops.push(service.stop)
    const base = config.server.externalUrl
    return [
      `base URL ${base}`,
      `docs     ${base}/docs`,
      ...lines,
      `try      curl ${base}/signup -d '{"email":"ada@example.com","password":"correct horse"}'`,
      `commands ${commandLine} --help`,
    ]
  },
)

/**
 * Answers the key of this data folder, made at the first start: servers verify tokens by `/.well-known/jwks.json`, as in
 * production, and tokens survive a restart.
 */
async function ensureSigningKey(file: string): Promise<string> {
  const kept = await readFile(file, 'utf8').catch(() => '')
  if (kept) return kept.trim()
  const keys = JSON.stringify(await generateKeySet('ES256'))
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, `${keys}\n`, { mode: 0o600 })
  return keys
}
