// `pnpm dev`: the service with embedded defaults. Settings of the environment win: a DATABASE_URL replaces the embedded
// PostgreSQL, an SMTP host the inbox.
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { parseBoolean } from '@services/common/config/variables'
import { PORTS, readPort } from '@services/common/dev/dev-settings'
import { runDev } from '@services/common/dev/run-dev'
import { readConfig } from './config.ts'
import { generateKeySet } from './flows/commands/keys-command.ts'
import { reportFaults } from './start.ts'

await runDev('auth', async ({ env, given, port, dataDir, stops, startPostgres, settle, commandLine }) => {
  const hasPages = parseBoolean(given('HOSTED_PAGES_ENABLED') ?? 'true') !== false
  const externalUrl = given('API_EXTERNAL_URL') ?? `http://127.0.0.1:${port}`
  const defaults: Record<string, string> = {
    // Without an application, links of mails lead to the pages; an application may run at any port of this machine.
    AUTH_SITE_URL: hasPages ? `${externalUrl}/ui/account` : 'http://localhost:3000',
    AUTH_URI_ALLOW_LIST: 'http://localhost:*,http://localhost:*/**',
    AUTH_API_EXTERNAL_URL: externalUrl,
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
    AUTH_HOSTED_PAGES_ENABLED: 'true',
    AUTH_SELF_DELETION_ENABLED: 'true',
    // The console signs in on the pages.
    AUTH_CONSOLE_ENABLED: String(hasPages),
    AUTH_CONSOLE_REQUIRE_MFA: 'false',
    AUTH_LOG_LEVEL: 'warn',
  }
  // A given secret must keep verifying tokens; a key would take over their signing.
  if (!given('JWT_SECRET') && !given('JWT_KEYS')) {
    defaults.AUTH_JWT_KEYS = await ensureSigningKey(join(dataDir, 'jwt-keys.json'))
  }
  // Loads while PostgreSQL starts; a failure surfaces at the `await` below, even if PostgreSQL fails first.
  const loading = import('./serve.ts')
  loading.catch(() => {})
  let inboxUrl = env.DEV_INBOX_URL
  Object.assign(defaults, await startPostgres())
  if (!given('SMTP_HOST')) {
    const { startInbox } = await import('@services/common/dev/inbox')
    const inbox = await startInbox({
      smtpPort: readPort(PORTS.inboxSmtp, env),
      webPort: readPort(PORTS.inboxWeb, env),
      file: join(dataDir, '../inbox/messages.json'),
    })
    stops.push(inbox.close)
    defaults.AUTH_SMTP_HOST = '127.0.0.1'
    defaults.AUTH_SMTP_PORT = String(inbox.smtpPort)
    inboxUrl = inbox.webUrl
  }
  const { config, log } = settle(readConfig, defaults)
  reportFaults({ config, log })
  const { serve } = await loading
  const service = await serve(config, log)
  stops.push(service.stop)
  const base = config.server.externalUrl
  const consoleOrigin = config.console.port && `http://localhost:${config.console.port}`
  return {
    url: `http://127.0.0.1:${port}`,
    inboxUrl,
    lines: [
      `base URL ${base}`,
      `docs     ${base}/docs`,
      ...(config.pages.enabled ? [`sign-in  ${base}/ui/sign-in`] : []),
      ...(config.console.enabled ? [`console  ${consoleOrigin ?? base}/console`] : []),
      // `pnpm dev` of both services prints the inbox on lines of its own.
      ...(inboxUrl && !env.DEV_INBOX_URL ? [`inbox    ${inboxUrl}`] : []),
      `try      curl ${base}/signup -d '{"email":"ada@example.com","password":"correct horse"}'`,
      ...(config.console.enabled ? [`admin    ${commandLine} admin create --email you@example.com`] : []),
      `commands ${commandLine} --help`,
    ],
  }
})

/** Returns the data folder's key. Tokens survive a restart and are verified by `/.well-known/jwks.json`. */
async function ensureSigningKey(file: string): Promise<string> {
  const kept = await readFile(file, 'utf8').catch(() => '')
  if (kept) return kept.trim()
  const keys = JSON.stringify(await generateKeySet('ES256'))
  await mkdir(dirname(file), { recursive: true })
  await writeFile(`${file}.next`, `${keys}\n`, { mode: 0o600 })
  await rename(`${file}.next`, file)
  return keys
}
