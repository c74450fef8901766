// Generated parts of docs/reference/auth. The pages need marks for each: `<!-- NAME -->` and `<!-- end NAME -->`.
import { createLogger } from '../../packages/common/src/telemetry/logger.ts'
import { HOOK_POINTS } from '../../services/auth/src/adapters/hooks/points.ts'
import { createApp } from '../../services/auth/src/app.ts'
import { commands } from '../../services/auth/src/commands.ts'
import { captchaVariables } from '../../services/auth/src/config/captcha.ts'
import { consoleVariables } from '../../services/auth/src/config/console.ts'
import { encryptionVariables } from '../../services/auth/src/config/encryption.ts'
import {
  customProviderVariables,
  egressVariables,
  externalVariables,
  web3Variables,
} from '../../services/auth/src/config/external.ts'
import {
  EXTERNAL_PROVIDERS,
  externalProviderVariables,
  oidcVariables,
} from '../../services/auth/src/config/external-providers.ts'
import { mfaVariables } from '../../services/auth/src/config/factors/mfa.ts'
import { passkeyVariables } from '../../services/auth/src/config/factors/passkeys.ts'
import { hookVariables } from '../../services/auth/src/config/hooks/hook-variables.ts'
import { webhookVariables } from '../../services/auth/src/config/hooks/webhook-variables.ts'
import { jwtVariables } from '../../services/auth/src/config/jwt.ts'
import { limitVariables } from '../../services/auth/src/config/limits.ts'
import { mailVariables } from '../../services/auth/src/config/mail.ts'
import { clientRegistrationVariables } from '../../services/auth/src/config/oauth/client-registration.ts'
import { oauthServerVariables } from '../../services/auth/src/config/oauth/oauth-server.ts'
import {
  databaseVariables,
  inheritedVariables,
  logVariables,
  telemetryVariables,
} from '../../services/auth/src/config/operation.ts'
import { pageVariables } from '../../services/auth/src/config/pages/page-variables.ts'
import { passwordVariables } from '../../services/auth/src/config/passwords.ts'
import { serverVariables } from '../../services/auth/src/config/server.ts'
import { sessionVariables } from '../../services/auth/src/config/sessions.ts'
import { signupVariables } from '../../services/auth/src/config/signup.ts'
import { smsVariables } from '../../services/auth/src/config/sms.ts'
import { smsGatewayVariables } from '../../services/auth/src/config/sms-gateways.ts'
import { smtpVariables } from '../../services/auth/src/config/smtp.ts'
import { readConfig, variables } from '../../services/auth/src/config.ts'
import { ACTS, type Act } from '../../services/auth/src/core/freshness/acts.ts'
import { makeDeps } from '../../services/auth/src/deps.ts'
import { errorCatalogue } from '../../services/auth/src/errors.ts'
import { clientMethodsPart } from './client-methods.ts'
import { code, commandsPart, errorsPart, type Generated, tableOf } from './generated.ts'
import { type ApiDocument, operationParts } from './operations.ts'
import { type VariableGroup, variableTables } from './variables.ts'

/** Longest first: `SLACK_OIDC` is no variable of `SLACK`. */
const NAMES = EXTERNAL_PROVIDERS.toSorted((one, other) => other.length - one.length)

/** One row per variable of a provider, a mail kind and a notification. */
const PROVIDERS = {
  pattern: new RegExp(`^EXTERNAL_(${NAMES.join('|').toUpperCase()})_`),
  placeholder: '<P>',
}
const HOOKS = {
  pattern: new RegExp(`^HOOK_(${Object.values(HOOK_POINTS).join('|')})_`),
  placeholder: '<POINT>',
  reword: [/at [a-z-]+\.$/, 'at this point.'] as const,
}
const SUBJECTS = {
  pattern: /^MAILER_SUBJECTS_(.+)$/,
  placeholder: '<KIND>',
  reword: [/unset: `.*?` in/, 'unset: the built-in subject in'] as const,
}
const TEMPLATES = { pattern: /^MAILER_TEMPLATES_(.+)$/, placeholder: '<KIND>' }
const NOTIFICATIONS = { pattern: /^MAILER_NOTIFICATIONS_(.+)_ENABLED$/, placeholder: '<KIND>' }

const GROUPS: VariableGroup[] = [
  { mark: 'server', variables: serverVariables },
  { mark: 'database', variables: databaseVariables },
  { mark: 'log', variables: logVariables },
  { mark: 'telemetry', variables: telemetryVariables },
  { mark: 'tokens', variables: jwtVariables },
  { mark: 'sign-up', variables: signupVariables },
  { mark: 'passwords', variables: passwordVariables },
  { mark: 'sessions', variables: sessionVariables },
  { mark: 'limits', variables: limitVariables },
  { mark: 'captchas', variables: captchaVariables },
  { mark: 'mail server', variables: smtpVariables },
  { mark: 'pages', variables: pageVariables },
  { mark: 'mail', variables: mailVariables, repeated: [SUBJECTS, TEMPLATES, NOTIFICATIONS] },
  { mark: 'sms', variables: smsVariables },
  { mark: 'sms gateways', variables: smsGatewayVariables },
  { mark: 'second factors', variables: mfaVariables },
  { mark: 'passkeys', variables: passkeyVariables },
  { mark: 'encryption', variables: encryptionVariables },
  { mark: 'external sign-in', variables: externalVariables },
  { mark: 'providers', variables: externalProviderVariables, repeated: [PROVIDERS] },
  { mark: 'wallets', variables: web3Variables },
  { mark: 'custom providers', variables: customProviderVariables },
  { mark: 'oauth server', variables: { ...oauthServerVariables, ...clientRegistrationVariables } },
  { mark: 'egress', variables: egressVariables },
  { mark: 'hooks', variables: hookVariables, repeated: [HOOKS] },
  { mark: 'webhooks', variables: webhookVariables },
  { mark: 'console', variables: consoleVariables },
  { mark: 'inherited', variables: inheritedVariables },
]

const ownProviderVariables = Object.fromEntries(
  Object.entries(oidcVariables).map(([name, variable]) => [`EXTERNAL_OIDC_<NAME>_${name}`, variable]),
)

export async function generatedParts(): Promise<Generated[]> {
  return [
    ...operationParts(await readDocument(), {
      page: 'auth/http.md',
      authorization: { '': 'none', user: 'access token', admin: 'admin token' },
      explainedOnce: ['405', '408', '413', '415', '431', '500', '503', '504', 'X-Supabase-Api-Version', 'X-JWT-AUD'],
    }),
    actsPart(),
    clientMethodsPart(),
    errorsPart('auth/errors.md', errorCatalogue),
    commandsPart('auth/command-line.md', commands),
    ...variableTables('auth/configuration.md', 'AUTH_', variables, GROUPS),
    ...variableTables('auth/configuration.md', 'AUTH_', {}, [
      { mark: 'own providers', variables: ownProviderVariables },
    ]),
  ]
}

/** The OpenAPI document, from an app that reaches nothing. */
async function readDocument(): Promise<ApiDocument> {
  const { config } = readConfig({
    AUTH_SITE_URL: 'https://app.example.com',
    AUTH_API_EXTERNAL_URL: 'https://auth.example.com',
    AUTH_DATABASE_URL: 'postgres://localhost/auth',
    AUTH_JWT_SECRET: 'a-secret-of-the-reference-of-32-bytes-or-more',
    AUTH_EXTERNAL_EMAIL_ENABLED: 'false',
  })
  const unused = undefined as never
  const log = createLogger({ name: 'reference', level: 'fatal' })
  const app = await createApp(await makeDeps(config, log, { db: unused, pool: unused, queue: unused }))
  await app.ready()
  const document = (await app.inject('/openapi.json')).json() as ApiDocument
  await app.close()
  return document
}

/** Demands of each sensitive change under the two switches. */
function actsPart(): Generated {
  const demanded = (isNamed: true | undefined, proof: string) => (isNamed ? proof : `${proof} or a recent sign-in`)
  const rows = Object.entries<Act>(ACTS).map(([name, { doors, needsPassword, needsNonce, signInOnly }]) => [
    name,
    doors.map(code).join(', '),
    signInOnly ? 'a recent sign-in' : demanded(needsPassword, 'the current password'),
    signInOnly ? 'a recent sign-in' : demanded(needsNonce, 'a nonce'),
  ])
  const head = ['Change', 'Request', 'With the first setting', 'With the second setting']
  return { page: 'auth/http.md', mark: 'acts', markdown: tableOf(head, rows) }
}
