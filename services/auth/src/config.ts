// Settings of the service: each file of config/ declares, checks and groups the variables of one subject. No other code
// reads the environment; it gets its part (`config.smtp`), checked and in seconds.
import {
  type Environment,
  type GivenValue,
  readVariables,
  type Values,
  type Variables,
} from '@services/common/config/variables'
import { databaseSettings, databaseWarnings } from '@services/common/database/settings'
import { telemetrySettings } from '@services/common/telemetry/settings'
import { captchaProblems, captchaSettings, captchaVariables } from './config/captcha.ts'
import { consoleProblems, consoleSettings, consoleVariables } from './config/console.ts'
import { encryptionSettings, encryptionVariables } from './config/encryption.ts'
import {
  customProviderSettings,
  customProviderVariables,
  egressSettings,
  egressVariables,
  externalSettings,
  externalVariables,
  web3Settings,
  web3Variables,
  web3Warnings,
} from './config/external.ts'
import {
  externalProviderGaps,
  externalProviderSettings,
  externalProviderVariables,
  oidcProviderGaps,
  oidcProviderNames,
  oidcProviderProblems,
  oidcProviderSettings,
  oidcProviderVariables,
} from './config/external-providers.ts'
import { mfaSettings, mfaVariables } from './config/factors/mfa.ts'
import { passkeyProblems, passkeySettings, passkeyVariables, passkeyWarnings } from './config/factors/passkeys.ts'
import { relyingPartyProblems, relyingPartyWarnings } from './config/factors/relying-party.ts'
import { hookProblems, hookWarnings } from './config/hooks/hook-checks.ts'
import { hookSettings, hookVariables } from './config/hooks/hook-variables.ts'
import { webhookProblems, webhookSettings, webhookVariables } from './config/hooks/webhook-variables.ts'
import { jwtSettings, jwtVariables, jwtWarnings } from './config/jwt.ts'
import { limitSettings, limitVariables } from './config/limits.ts'
import { mailProblems, mailSettings, mailVariables, mailWarnings } from './config/mail.ts'
import { clientRegistrationSettings, clientRegistrationVariables } from './config/oauth/client-registration.ts'
import { oauthServerProblems, oauthServerSettings, oauthServerVariables } from './config/oauth/oauth-server.ts'
import {
  auditProblems,
  databaseVariables,
  inheritedVariables,
  inheritedWarnings,
  logVariables,
  telemetryVariables,
} from './config/operation.ts'
import {
  arrivalTargets,
  pageProblems,
  pageSettings,
  pageVariables,
  pageWarnings,
} from './config/pages/page-variables.ts'
import { passwordSettings, passwordVariables } from './config/passwords.ts'
import { serverSettings, serverVariables } from './config/server.ts'
import { sessionProblems, sessionSettings, sessionVariables } from './config/sessions.ts'
import { signupSettings, signupVariables } from './config/signup.ts'
import { smsSettings, smsVariables, smsWarnings } from './config/sms.ts'
import {
  completeGateways,
  smsGatewayGaps,
  smsGatewayProblems,
  smsGatewaySettings,
  smsGatewayVariables,
} from './config/sms-gateways.ts'
import { smtpProblems, smtpSettings, smtpVariables } from './config/smtp.ts'
import { neverMatching } from './core/redirects/never-matching.ts'

/** All variables, read as `AUTH_<NAME>`, then as `<NAME>`; docs/reference/auth/configuration.md shows them. */
export const variables = {
  ...serverVariables,
  ...databaseVariables,
  ...logVariables,
  ...telemetryVariables,
  ...jwtVariables,
  ...signupVariables,
  ...passwordVariables,
  ...sessionVariables,
  ...limitVariables,
  ...captchaVariables,
  ...smtpVariables,
  ...mailVariables,
  ...pageVariables,
  ...smsVariables,
  ...smsGatewayVariables,
  ...mfaVariables,
  ...passkeyVariables,
  ...encryptionVariables,
  ...egressVariables,
  ...externalVariables,
  ...externalProviderVariables,
  ...customProviderVariables,
  ...oauthServerVariables,
  ...clientRegistrationVariables,
  ...web3Variables,
  ...hookVariables,
  ...webhookVariables,
  ...consoleVariables,
  ...inheritedVariables,
} satisfies Variables

type RawConfig = Values<typeof variables>
type OwnProviders = ReturnType<typeof oidcProviderSettings>
export type Config = ReturnType<typeof groupConfig> & { gaps: readonly string[]; origin: SettingsOrigin }

/** Declarations and texts of the settings, for administrators. `warnings` are those of readConfig. */
export interface SettingsOrigin {
  variables: Variables
  given: Readonly<Record<string, GivenValue>>
  warnings: readonly string[]
}

/**
 * Throws a ConfigError that lists all problems. `warnings` name unknown settings and those without effect;
 * `config.gaps` names enabled features without credentials, which are refused on use.
 */
export function readConfig(
  environment: Environment,
  file: Environment = {},
  now = new Date(),
): { config: Config; warnings: string[] } {
  const names = oidcProviderNames(environment, file)
  const all = { ...variables, ...oidcProviderVariables(names) } as typeof variables
  const rulesBroken = (values: RawConfig) => [
    ...smtpProblems(values),
    ...mailProblems(values, environment.NODE_ENV || file.NODE_ENV, now),
    ...captchaProblems(values),
    ...pageProblems(values, names),
    ...oidcProviderProblems(names),
    ...smsGatewayProblems(values),
    ...relyingPartyProblems(values),
    ...passkeyProblems(values),
    ...sessionProblems(values),
    ...auditProblems(values),
    ...hookProblems(values),
    ...webhookProblems(values),
    ...oauthServerProblems(values),
    ...consoleProblems(values),
  ]
  const { values, warnings, given } = readVariables(all, 'AUTH_', environment, file, 'GOTRUE_', rulesBroken)
  const toNote = [
    ...inheritedWarnings(values),
    ...databaseWarnings(values, 'AUTH_'),
    ...jwtWarnings(values),
    ...mailWarnings(values, now),
    ...pageWarnings(values),
    ...smsWarnings(values, now),
    ...web3Warnings(values),
    ...relyingPartyWarnings(values),
    ...passkeyWarnings(values),
    ...hookWarnings(values, values.API_MAX_REQUEST_DURATION),
    ...neverMatching(values.URI_ALLOW_LIST),
  ]
  const gaps = [...externalProviderGaps(values), ...oidcProviderGaps(names, values), ...smsGatewayGaps(values)]
  const usable = { ...values, SMS_PROVIDER: completeGateways(values) }
  const origin = { variables: all, given, warnings: [...warnings, ...toNote] }
  const config = { ...groupConfig(usable, oidcProviderSettings(names, values)), gaps, origin }
  return { config, warnings: origin.warnings }
}

const groupConfig = (values: RawConfig, ownProviders: OwnProviders) => ({
  siteUrl: values.SITE_URL,
  redirectAllowList: [...values.URI_ALLOW_LIST, ...arrivalTargets(values)],
  server: serverSettings(values),
  database: databaseSettings(values),
  log: { level: values.LOG_LEVEL, file: values.LOG_FILE },
  auditInDatabase: !values.AUDIT_LOG_DISABLE_POSTGRES,
  auditKeepSeconds: values.AUDIT_KEEP,
  auditPiiRetentionSeconds: values.AUDIT_PII_RETENTION,
  telemetry: telemetrySettings(values),
  jwt: jwtSettings(values),
  signup: signupSettings(values),
  passwords: passwordSettings(values),
  sessions: sessionSettings(values),
  limits: limitSettings(values),
  captcha: captchaSettings(values),
  smtp: smtpSettings(values),
  mail: mailSettings(values),
  pages: pageSettings(values),
  messages: { keepSeconds: values.MESSAGES_KEEP },
  sms: { ...smsSettings(values), ...smsGatewaySettings(values) },
  mfa: mfaSettings(values),
  passkeys: passkeySettings(values),
  external: externalSettings(values),
  web3: web3Settings(values),
  customProviders: customProviderSettings(values),
  oauthServer: { ...oauthServerSettings(values), ...clientRegistrationSettings(values) },
  webhooks: webhookSettings(values),
  console: consoleSettings(values),
  encryption: encryptionSettings(values),
  egress: egressSettings(values),
  hooks: hookSettings(values),
  providers: externalProviderSettings(values),
  ownProviders,
})
