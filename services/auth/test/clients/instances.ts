// Instances of the service as the test suites of client libraries expect them, on one embedded database.
// How to run a suite against them, and what fails for which reason: README.md beside this file.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { startInbox } from '@services/common/dev/inbox'
import { programOf } from '@services/common/testing/run/program'
import { generateKeySet } from '../../src/flows/commands/keys-command.ts'

const AUTOCONFIRM = {
  AUTH_MAILER_AUTOCONFIRM: 'true',
  AUTH_SMS_AUTOCONFIRM: 'true',
  AUTH_EXTERNAL_PHONE_ENABLED: 'true',
  AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
  AUTH_EXTERNAL_GITHUB_ENABLED: 'true',
  AUTH_EXTERNAL_GITHUB_CLIENT_ID: 'client',
  AUTH_EXTERNAL_GITHUB_SECRET: 'secret',
  AUTH_EXTERNAL_GITHUB_REDIRECT_URI: 'http://localhost:3000/callback',
}

/** Relying party of the JavaScript suite's own authenticator. */
const PASSKEYS = {
  AUTH_PASSKEY_ENABLED: 'true',
  AUTH_WEBAUTHN_RP_ID: 'localhost',
  AUTH_WEBAUTHN_RP_DISPLAY_NAME: 'Suite',
  AUTH_WEBAUTHN_RP_ORIGINS: 'http://localhost:5173',
}

/** Ports are written into the suites. */
const INSTANCES: Record<string, Record<string, string>> = {
  9999: {},
  9998: { ...AUTOCONFIRM, ...PASSKEYS },
  9997: {
    AUTH_DISABLE_SIGNUP: 'true',
    AUTH_EXTERNAL_EMAIL_ENABLED: 'false',
    AUTH_EXTERNAL_PHONE_ENABLED: 'false',
  },
  9996: { ...AUTOCONFIRM, AUTH_JWT_KEYS: JSON.stringify(await generateKeySet('RS256')) },
}

const directory = await mkdtemp(join(tmpdir(), 'clients-'))
const postgres = await startEmbeddedPostgres({ dataDir: join(directory, 'postgres'), database: 'auth', durable: false })
const inbox = await startInbox({ smtpPort: 0, webPort: 0 })
const common = {
  PATH: process.env.PATH,
  AUTH_DATABASE_URL: postgres.url,
  AUTH_API_HOST: '127.0.0.1',
  AUTH_SITE_URL: 'http://localhost:3000',
  AUTH_JWT_SECRET: process.env.JWT_SECRET ?? 'secret-of-at-least-thirty-two-bytes',
  AUTH_SMTP_HOST: '127.0.0.1',
  AUTH_SMTP_PORT: String(inbox.smtpPort),
  AUTH_SMTP_ADMIN_EMAIL: 'admin@example.com',
  AUTH_SMTP_MAX_FREQUENCY: '1ns',
  AUTH_MAILER_SIGN_IN_LINK_MAX_FREQUENCY: '1ns',
  AUTH_RATE_LIMIT_EMAIL_SENT: '1000000',
  AUTH_RATE_LIMIT_VERIFY: '1000000',
  AUTH_RATE_LIMIT_TOKEN_REFRESH: '1000000',
  // Suites register clients, and send no users to the page.
  AUTH_OAUTH_SERVER_ENABLED: 'true',
  AUTH_OAUTH_SERVER_AUTHORIZATION_PATH: '/consent',
  // The suites sign up with `password`, and with six letters.
  AUTH_PASSWORD_MIN_LENGTH: '6',
  AUTH_PASSWORD_REFUSE_GUESSABLE: 'false',
}
const instances = Object.entries(INSTANCES).map(([port, settings]) =>
  spawn(process.execPath, [programOf('auth', 'main')], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    env: {
      ...common,
      AUTH_PORT: port,
      AUTH_API_EXTERNAL_URL: `http://localhost:${port}${process.env.BASE_PATH ?? ''}`,
      ...settings,
    },
    stdio: 'inherit',
  }),
)
const exits = instances.map((instance) => once(instance, 'exit'))
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    for (const instance of instances) instance.kill('SIGTERM')
  })
}
await Promise.all(exits)
await inbox.close()
await postgres.stop()
await rm(directory, { recursive: true })
