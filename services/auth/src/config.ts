import {
  anyUrl,
  boolean,
  ConfigError,
  duration,
  type Environment,
  httpUrl,
  integer,
  list,
  oneOf,
  parsed,
  port,
  readVariables,
  text,
  type Values,
  type Variables,
} from '@services/common/config'
import { LOG_LEVELS } from '@services/common/logger'
import { parseAllowList } from './http/redirect-target.ts'
import { parseJwtKeys } from './jwks/jwt-keys.ts'
import { checkSubject } from './mail/check-template.ts'
import { MAIL_KINDS, type MailKind, NOTIFICATION_KINDS, settingName } from './mail/kinds.ts'
import { isLocale } from './mail/locale.ts'
import type { Template } from './mail/template/template.ts'
import { parseRequiredCharacters } from './passwords/password-rules.ts'

/** The eighteen external providers, as they are named in `provider`, `/settings` and `EXTERNAL_<PROVIDER>_…`. */
export const EXTERNAL_PROVIDERS = [
  'apple',
  'azure',
  'bitbucket',
  'discord',
  'facebook',
  'figma',
  'github',
  'gitlab',
  'google',
  'keycloak',
  'linkedin',
  'notion',
  'slack',
  'snapchat',
  'spotify',
  'twitch',
  'twitter',
  'workos',
] as const
export type ExternalProvider = (typeof EXTERNAL_PROVIDERS)[number]

const DAY = 86_400

/** Every variable of the service; the README's table is made from it. Read as `AUTH_<NAME>`, then as bare `<NAME>`. */
export const variables = {
  SITE_URL: anyUrl('Base URL of the site; any URI on its host is a permitted `redirect_to`.', { required: true }),
  URI_ALLOW_LIST: parsed(
    'list',
    'Further permitted `redirect_to` URIs, with the globs `*`, `**`, `?`, `[a-z]` and `{a,b}`.',
    { default: '' },
    parseAllowList,
  ),
  API_EXTERNAL_URL: httpUrl('URL under which this service is reachable; mail links start with it.', { required: true }),
  API_HOST: text('Address to listen on.', { default: '0.0.0.0' }),
  PORT: port('Port to listen on.', { default: '8081', aliases: ['API_PORT'] }),
  API_MAX_REQUEST_DURATION: duration('A request running longer is answered 504.', { default: '10s', positive: true }),
  REQUEST_ID_HEADER: text('Header to take the request id from; without it each request gets a new one.'),
  CORS_ALLOWED_HEADERS: list('Request headers browsers may send beside the built-in ones.', { default: '' }),
  WEB_CONCURRENCY: integer('Processes on this machine.', { default: '1', min: 1, max: 256 }),
  WORKERS_ENABLED: boolean('Deliver mail from this process; false where separate `worker` processes do.', {
    default: 'true',
  }),

  DATABASE_URL: text('PostgreSQL connection string.', { required: true, aliases: ['DB_DATABASE_URL'] }),
  DB_DRIVER: oneOf(['postgres'], 'Only PostgreSQL is served.', { default: 'postgres' }),
  DB_MAX_POOL_SIZE: integer('Most connections per process; 0 means no limit of ours.', { default: '0', max: 10_000 }),
  DB_NAMESPACE: parsed(
    'string',
    'Prefix of every table name: `acme` makes `acme_users`.',
    { default: '' },
    parseNamespace,
  ),
  MIGRATE_ON_START: boolean('Apply migrations at start; false where `migrate` runs on its own.', { default: 'true' }),

  LOG_LEVEL: oneOf(LOG_LEVELS, 'Least severe level that is logged.', { default: 'info' }),
  LOG_FILE: text('File that log lines are appended to instead of standard output.'),
  AUDIT_LOG_DISABLE_POSTGRES: boolean('Write audit events to the log only, not to the database.', { default: 'false' }),
  TRACING_ENABLED: boolean('Export traces.', { default: 'false' }),
  TRACING_EXPORTER: oneOf(['opentelemetry'], 'Where traces go; the `OTEL_*` variables say how.', {
    default: 'opentelemetry',
  }),
  METRICS_ENABLED: boolean('Export metrics.', { default: 'false' }),
  METRICS_EXPORTER: oneOf(['opentelemetry', 'prometheus'], 'Pushed by OTLP, or scraped.', { default: 'opentelemetry' }),
  OTEL_EXPORTER_PROMETHEUS_HOST: text('Address of the Prometheus endpoint.', { default: '0.0.0.0' }),
  OTEL_EXPORTER_PROMETHEUS_PORT: port('Port of the Prometheus endpoint, served at `/`.', { default: '9100' }),
  DEBUG: parsed(
    'boolean',
    'More detail from the telemetry SDK.',
    { default: 'false' },
    // DEBUG is also the switch of other libraries, which put names in it: only true is ours.
    (value) => /^(true|1)$/i.test(value),
  ),

  JWT_SECRET: parsed(
    'string',
    'Secret of HS256 tokens, of refresh tokens and of codes; at least 16 bytes, better 32 or more.',
    { required: true },
    parseSecret,
  ),
  JWT_KEYS: parsed(
    'JSON',
    'JWK set (or array of JWKs) of private keys; the one whose `key_ops` has `sign` signs, the others verify.',
    {},
    parseJwtKeys,
  ),
  JWT_EXP: duration('Lifetime of access tokens.', { default: '3600', positive: true }),
  JWT_AUD: text('Audience of tokens and of new users.', { default: 'authenticated' }),
  JWT_ISSUER: text('`iss` of tokens; API_EXTERNAL_URL when unset.'),
  JWT_ADMIN_ROLES: list('Role claims accepted for admin operations.', { default: 'service_role,supabase_admin' }),
  JWT_ADMIN_GROUP_NAME: text('Inherited: role of users who may write their own app_metadata.', { default: 'admin' }),
  JWT_DEFAULT_GROUP_NAME: text('Role of new users.', { default: 'authenticated' }),

  DISABLE_SIGNUP: boolean('Only invited users can join.', { default: 'false' }),
  EXTERNAL_EMAIL_ENABLED: boolean('E-mail sign-up and sign-in.', { default: 'true' }),
  EXTERNAL_PHONE_ENABLED: boolean('Phone sign-up and sign-in.', { default: 'true' }),
  EXTERNAL_ANONYMOUS_USERS_ENABLED: boolean('Anonymous sign-in.', { default: 'false' }),
  PASSWORD_MIN_LENGTH: integer('Shortest password, in bytes.', { default: '6', min: 1, max: 1024 }),
  PASSWORD_REQUIRED_CHARACTERS: parsed(
    'string',
    'Sets of characters separated by `:`; a password needs one of each. `\\:` is a colon.',
    { default: '' },
    parseRequiredCharacters,
  ),
  PASSWORD_HASH_MEMORY_KIB: integer('argon2id memory.', { default: '19456', min: 8, max: 4_194_304 }),
  PASSWORD_HASH_PASSES: integer('argon2id passes.', { default: '2', min: 2, max: 100 }),
  PASSWORD_HASH_LANES: integer('argon2id lanes.', { default: '1', min: 1, max: 64 }),
  SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: boolean('A new password needs a nonce from /reauthenticate.', {
    default: 'false',
  }),
  SECURITY_REFRESH_TOKEN_ROTATION_ENABLED: boolean('A reused refresh token ends its session.', { default: 'true' }),
  SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: duration(
    'While a refresh token was replaced this recently, using it again returns its successor.',
    { default: '10' },
  ),
  SESSIONS_TIMEBOX: duration('Sessions end this long after sign-in.', { positive: true }),
  SESSIONS_INACTIVITY_TIMEOUT: duration('Sessions end this long after their last refresh.', { positive: true }),

  RATE_LIMIT_HEADER: text(
    'Header that holds the client address to limit by; the proxy must overwrite it, not append to what a client sent.',
  ),
  SECURITY_SB_FORWARDED_FOR_ENABLED: boolean('Take the client address from `Sb-Forwarded-For`; only if trusted.', {
    default: 'false',
  }),
  RATE_LIMIT_EMAIL_SENT: parsed(
    'rate',
    'E-mails for all users: so many per hour, or `N/duration` for N per duration.',
    { default: '360' },
    rate,
  ),
  RATE_LIMIT_TOKEN_REFRESH: integer('POST /token per address and 5 minutes.', { default: '150', min: 1 }),
  RATE_LIMIT_VERIFY: integer('/verify per address and 5 minutes.', { default: '30', min: 1 }),
  RATE_LIMIT_OTP: integer('Sign-up, mail-sending and PUT /user calls per address and 5 minutes.', {
    default: '30',
    min: 1,
  }),
  RATE_LIMIT_ANONYMOUS_USERS: integer('Anonymous sign-ins per address and hour.', { default: '30', min: 1 }),
  RATE_LIMIT_FAILED_SIGN_INS: integer('Wrong passwords per account and 15 minutes.', { default: '20', min: 1 }),

  SECURITY_CAPTCHA_ENABLED: boolean('Demand a captcha on public endpoints.', { default: 'false' }),
  SECURITY_CAPTCHA_PROVIDER: oneOf(['hcaptcha', 'turnstile'], 'Who checks captchas.', { default: 'hcaptcha' }),
  SECURITY_CAPTCHA_SECRET: text("The captcha provider's secret; required when enabled."),
  SECURITY_CAPTCHA_TIMEOUT: duration('Longest wait for the captcha provider.', { default: '10s', positive: true }),

  SMTP_HOST: text('Mail server; required while e-mail is enabled.'),
  SMTP_PORT: port('Its port; 465 means TLS from the start. Required while e-mail is enabled.', {}),
  SMTP_USER: text('User name at the mail server, if it asks for one.'),
  SMTP_PASS: text('Password at the mail server.'),
  SMTP_ADMIN_EMAIL: text('From address of all mail; required while e-mail is enabled.'),
  SMTP_SENDER_NAME: text('From name; SMTP_ADMIN_EMAIL when unset.'),
  SMTP_TLS: oneOf(
    ['auto', 'required', 'off'],
    'TLS to the mail server: where it offers it (always when a password would leave this machine), never without, or never.',
    { default: 'auto' },
  ),
  SMTP_HEADERS: parsed(
    'JSON',
    'Further headers of all mail, names with a text or a list of texts; `$messageType` in them is the kind of the mail.',
    { default: '{}' },
    parseMailHeaders,
  ),
  SMTP_MAX_FREQUENCY: duration('Least time between confirmation mails to one address.', { default: '900' }),
  MAILER_AUTOCONFIRM: boolean('E-mail addresses count as confirmed at sign-up.', { default: 'false' }),
  MAILER_OTP_EXP: duration('Validity of mail links and codes.', { default: '3600', positive: true }),
  MAILER_OTP_LENGTH: integer('Digits of mailed codes.', { default: '6', min: 6, max: 10 }),
  MAILER_LINK_CONFIRMATION_PAGE: boolean(
    'Mail links open a page whose button confirms, instead of confirming at once.',
    {
      default: 'false',
    },
  ),
  MAILER_URLPATHS_INVITE: text('Path of invitation links.', { default: '/verify' }),
  MAILER_URLPATHS_CONFIRMATION: text('Path of confirmation links.', { default: '/verify' }),
  MAILER_URLPATHS_RECOVERY: text('Path of recovery and magic links.', { default: '/verify' }),
  MAILER_URLPATHS_EMAIL_CHANGE: text('Path of e-mail change links.', { default: '/verify' }),
  MAILER_DEFAULT_LOCALE: parsed(
    'string',
    'Language of mails to users of whom none is known that MAILER_LOCALES has.',
    { default: 'en' },
    parseLocale,
  ),
  MAILER_LOCALES: parsed(
    'list',
    'Languages mails are written in; others than `en` and `de` need templates of your own.',
    { default: 'en,de' },
    parseLocales,
  ),
  MAILER_TEMPLATE_MAX_SIZE: integer('Largest template in bytes; a larger one is refused.', {
    default: '1000000',
    min: 1,
    max: 10_000_000,
  }),
  MAILER_TEMPLATE_MAX_AGE: duration('A template from a URL is loaded again when it is older.', { default: '10m' }),
  MAILER_TEMPLATE_RETRY_INTERVAL: duration('Least time between two loads of one that cannot be loaded.', {
    default: '10s',
  }),
  MESSAGES_KEEP: duration('How long sent messages stay in `GET /admin/messages`; failed ones stay 30 days.', {
    default: '168h',
  }),
  ...forEach(MAIL_KINDS, (kind, { subject }) => ({
    [`MAILER_SUBJECTS_${settingName(kind)}`]: parsed(
      'template',
      `Subject of ${kind} mails in all languages; unset: \`${subject}\` in the language of the mail.`,
      {},
      (value) => checkSubject(value, kind),
    ),
    [`MAILER_TEMPLATES_${settingName(kind)}`]: text(
      `URL, file or path on the site of the HTML template of ${kind} mails; \`{locale}\` is the language.`,
    ),
  })),
  ...forEach(NOTIFICATION_KINDS, (kind) => ({
    [`MAILER_NOTIFICATIONS_${settingName(kind).replace(/_NOTIFICATION$/, '')}_ENABLED`]: boolean(
      `Send ${kind} mails.`,
      { default: 'false' },
    ),
  })),

  SMS_AUTOCONFIRM: boolean('Phone numbers count as confirmed at sign-up.', { default: 'false' }),
  SMS_MAX_FREQUENCY: duration('Least time between codes to one number.', { default: '60' }),
  SMS_OTP_EXP: duration('Validity of SMS codes.', { default: '600', positive: true }),
  SMS_OTP_LENGTH: integer('Digits of SMS codes.', { default: '6', min: 6, max: 10 }),
  SMS_PROVIDER: oneOf(['twilio', 'messagebird', 'vonage', 'textlocal'], 'Who delivers SMS.'),
  SMS_TWILIO_ACCOUNT_SID: text('Twilio account.'),
  SMS_TWILIO_AUTH_TOKEN: text('Twilio token.'),
  SMS_TWILIO_MESSAGE_SERVICE_SID: text('Twilio messaging service or sender.'),
  SMS_MESSAGEBIRD_ACCESS_KEY: text('MessageBird access key.'),
  SMS_MESSAGEBIRD_ORIGINATOR: text('MessageBird originator.'),
  SMS_VONAGE_API_KEY: text('Vonage key.'),
  SMS_VONAGE_API_SECRET: text('Vonage secret.'),
  SMS_VONAGE_FROM: text('Vonage sender.'),
  SMS_TEXTLOCAL_API_KEY: text('TextLocal key.'),
  SMS_TEXTLOCAL_SENDER: text('TextLocal sender.'),

  ...forEach(Object.fromEntries(EXTERNAL_PROVIDERS.map((name) => [name, {}])), (provider) => ({
    [`EXTERNAL_${provider.toUpperCase()}_ENABLED`]: boolean(`Sign-in with ${provider}.`, { default: 'false' }),
    [`EXTERNAL_${provider.toUpperCase()}_CLIENT_ID`]: text('OAuth client id; required when enabled.'),
    [`EXTERNAL_${provider.toUpperCase()}_SECRET`]: text('OAuth client secret; required when enabled.'),
    [`EXTERNAL_${provider.toUpperCase()}_REDIRECT_URI`]: httpUrl('Callback address; required when enabled.'),
    [`EXTERNAL_${provider.toUpperCase()}_URL`]: httpUrl("Base address of a self-hosted provider; keycloak's realm."),
  })),

  OPERATOR_TOKEN: text('Inherited, without effect.'),
  API_ENDPOINT: text('Inherited, without effect.'),
} satisfies Variables

export type RawConfig = Values<typeof variables>
export type Config = ReturnType<typeof groupConfig>

/**
 * Checked settings in groups, as code receives them; durations in seconds. Throws a ConfigError that lists all problems.
 * `warnings` name settings that are unknown or without effect.
 */
export function readConfig(environment: Environment, file: Environment = {}): { config: Config; warnings: string[] } {
  const { values, warnings } = readVariables(variables, 'AUTH_', environment, file)
  const problems = [...mailProblems(values), ...captchaProblems(values), ...providerProblems(values)]
  if (problems.length > 0) throw new ConfigError(problems)
  return { config: groupConfig(values), warnings: [...warnings, ...idleSettings(values)] }
}

/** Settings that are set and change nothing: inherited ones, and switches of features that are not there yet. */
function idleSettings(values: RawConfig): string[] {
  const inherited = (['OPERATOR_TOKEN', 'API_ENDPOINT'] as const).filter((name) => values[name] !== undefined)
  const blocked = values.SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION
    ? [
        'AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION makes password changes impossible: /reauthenticate is not there yet',
      ]
    : []
  const later = Object.entries(values)
    .filter(([name, value]) => value && LATER.test(name))
    .map(([name]) => name)
  return [
    ...inherited.map((name) => `AUTH_${name} is inherited and has no effect`),
    ...blocked,
    ...later.map((name) => `AUTH_${name} has no effect in this version: its feature is not there yet`),
  ]
}

/** Read and checked already, so that a configuration stays valid when the feature arrives. */
const LATER =
  /^(SECURITY_CAPTCHA_ENABLED|SMS_PROVIDER|SMS_AUTOCONFIRM|EXTERNAL_(?!EMAIL|PHONE|ANONYMOUS)\w+_ENABLED|MAILER_NOTIFICATIONS_\w+)$/

function mailProblems(values: RawConfig): string[] {
  if (!values.EXTERNAL_EMAIL_ENABLED) return []
  return (['SMTP_HOST', 'SMTP_PORT', 'SMTP_ADMIN_EMAIL'] as const)
    .filter((name) => values[name] === undefined)
    .map((name) => `AUTH_${name} is required while AUTH_EXTERNAL_EMAIL_ENABLED is true`)
}

function captchaProblems(values: RawConfig): string[] {
  const missing = values.SECURITY_CAPTCHA_ENABLED && !values.SECURITY_CAPTCHA_SECRET?.trim()
  return missing ? ['AUTH_SECURITY_CAPTCHA_SECRET is required while AUTH_SECURITY_CAPTCHA_ENABLED is true'] : []
}

function providerProblems(values: RawConfig): string[] {
  const settings = values as Record<string, unknown>
  return EXTERNAL_PROVIDERS.flatMap((provider) => {
    const prefix = `EXTERNAL_${provider.toUpperCase()}_`
    if (!settings[`${prefix}ENABLED`]) return []
    const needed = ['CLIENT_ID', 'SECRET', 'REDIRECT_URI', ...(provider === 'keycloak' ? ['URL'] : [])]
    return needed
      .filter((name) => settings[prefix + name] === undefined)
      .map((name) => `AUTH_${prefix}${name} is required while AUTH_${prefix}ENABLED is true`)
  })
}

function groupConfig(values: RawConfig) {
  const settings = values as Record<string, unknown>
  return {
    siteUrl: values.SITE_URL,
    redirectAllowList: values.URI_ALLOW_LIST,
    server: {
      externalUrl: values.API_EXTERNAL_URL,
      host: values.API_HOST,
      port: values.PORT,
      maxRequestSeconds: values.API_MAX_REQUEST_DURATION,
      requestIdHeader: values.REQUEST_ID_HEADER,
      corsAllowedHeaders: values.CORS_ALLOWED_HEADERS,
      processes: values.WEB_CONCURRENCY,
      workersEnabled: values.WORKERS_ENABLED,
      trustSbForwardedFor: values.SECURITY_SB_FORWARDED_FOR_ENABLED,
    },
    database: {
      url: values.DATABASE_URL,
      maxPoolSize: values.DB_MAX_POOL_SIZE,
      namespace: values.DB_NAMESPACE,
      migrateOnStart: values.MIGRATE_ON_START,
    },
    log: { level: values.LOG_LEVEL, file: values.LOG_FILE },
    auditInDatabase: !values.AUDIT_LOG_DISABLE_POSTGRES,
    telemetry: {
      tracing: values.TRACING_ENABLED,
      metrics: values.METRICS_ENABLED ? values.METRICS_EXPORTER : (false as const),
      prometheus: { host: values.OTEL_EXPORTER_PROMETHEUS_HOST, port: values.OTEL_EXPORTER_PROMETHEUS_PORT },
      debug: values.DEBUG,
    },
    jwt: {
      secret: values.JWT_SECRET,
      keys: values.JWT_KEYS,
      lifetimeSeconds: values.JWT_EXP,
      audience: values.JWT_AUD,
      issuer: values.JWT_ISSUER ?? values.API_EXTERNAL_URL,
      adminRoles: values.JWT_ADMIN_ROLES,
      adminGroup: values.JWT_ADMIN_GROUP_NAME,
      defaultRole: values.JWT_DEFAULT_GROUP_NAME,
    },
    signup: {
      disabled: values.DISABLE_SIGNUP,
      email: values.EXTERNAL_EMAIL_ENABLED,
      phone: values.EXTERNAL_PHONE_ENABLED,
      anonymous: values.EXTERNAL_ANONYMOUS_USERS_ENABLED,
    },
    passwords: {
      minLength: values.PASSWORD_MIN_LENGTH,
      requiredCharacters: values.PASSWORD_REQUIRED_CHARACTERS,
      requireReauthentication: values.SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION,
      hashing: {
        memoryKib: values.PASSWORD_HASH_MEMORY_KIB,
        passes: values.PASSWORD_HASH_PASSES,
        lanes: values.PASSWORD_HASH_LANES,
      },
    },
    sessions: {
      rotation: values.SECURITY_REFRESH_TOKEN_ROTATION_ENABLED,
      reuseIntervalSeconds: values.SECURITY_REFRESH_TOKEN_REUSE_INTERVAL,
      timeboxSeconds: values.SESSIONS_TIMEBOX,
      inactivitySeconds: values.SESSIONS_INACTIVITY_TIMEOUT,
    },
    limits: {
      header: values.RATE_LIMIT_HEADER?.toLowerCase(),
      mailsSent: values.RATE_LIMIT_EMAIL_SENT,
      tokenPer5Minutes: values.RATE_LIMIT_TOKEN_REFRESH,
      verifyPer5Minutes: values.RATE_LIMIT_VERIFY,
      otpPer5Minutes: values.RATE_LIMIT_OTP,
      anonymousPerHour: values.RATE_LIMIT_ANONYMOUS_USERS,
      failedSignInsPer15Minutes: values.RATE_LIMIT_FAILED_SIGN_INS,
    },
    captcha: {
      enabled: values.SECURITY_CAPTCHA_ENABLED,
      provider: values.SECURITY_CAPTCHA_PROVIDER,
      secret: values.SECURITY_CAPTCHA_SECRET?.trim(),
      timeoutSeconds: values.SECURITY_CAPTCHA_TIMEOUT,
    },
    smtp: {
      host: values.SMTP_HOST,
      port: values.SMTP_PORT,
      user: values.SMTP_USER,
      password: values.SMTP_PASS,
      from: values.SMTP_ADMIN_EMAIL,
      senderName: values.SMTP_SENDER_NAME ?? values.SMTP_ADMIN_EMAIL,
      tls: values.SMTP_TLS,
      headers: values.SMTP_HEADERS,
    },
    mail: {
      autoconfirm: values.MAILER_AUTOCONFIRM,
      minGapSeconds: values.SMTP_MAX_FREQUENCY,
      codeLifetimeSeconds: values.MAILER_OTP_EXP,
      inviteLifetimeSeconds: 7 * DAY,
      codeLength: values.MAILER_OTP_LENGTH,
      linkConfirmationPage: values.MAILER_LINK_CONFIRMATION_PAGE,
      linkPaths: {
        invite: values.MAILER_URLPATHS_INVITE,
        confirmation: values.MAILER_URLPATHS_CONFIRMATION,
        recovery: values.MAILER_URLPATHS_RECOVERY,
        email_change: values.MAILER_URLPATHS_EMAIL_CHANGE,
      },
      defaultLocale: values.MAILER_DEFAULT_LOCALE,
      locales: [...new Set([values.MAILER_DEFAULT_LOCALE, ...values.MAILER_LOCALES])],
      templateMaxBytes: values.MAILER_TEMPLATE_MAX_SIZE,
      templateMaxAgeSeconds: values.MAILER_TEMPLATE_MAX_AGE,
      templateRetrySeconds: values.MAILER_TEMPLATE_RETRY_INTERVAL,
      subjects: forEach(MAIL_KINDS, (kind) => ({
        [kind]: settings[`MAILER_SUBJECTS_${settingName(kind)}`],
      })) as Partial<Record<MailKind, Template>>,
      templates: forEach(MAIL_KINDS, (kind) => ({
        [kind]: settings[`MAILER_TEMPLATES_${settingName(kind)}`],
      })) as Partial<Record<MailKind, string>>,
      notifications: forEach(NOTIFICATION_KINDS, (kind) => ({
        [kind]: settings[`MAILER_NOTIFICATIONS_${settingName(kind).replace(/_NOTIFICATION$/, '')}_ENABLED`] as boolean,
      })),
    },
    messages: { keepSeconds: values.MESSAGES_KEEP },
    sms: {
      provider: values.SMS_PROVIDER,
      autoconfirm: values.SMS_AUTOCONFIRM,
      minGapSeconds: values.SMS_MAX_FREQUENCY,
      codeLifetimeSeconds: values.SMS_OTP_EXP,
      codeLength: values.SMS_OTP_LENGTH,
    },
    external: Object.fromEntries(
      EXTERNAL_PROVIDERS.map((provider) => {
        const setting = (name: string) => settings[`EXTERNAL_${provider.toUpperCase()}_${name}`]
        return [
          provider,
          {
            enabled: setting('ENABLED') as boolean,
            clientId: setting('CLIENT_ID') as string | undefined,
            secret: setting('SECRET') as string | undefined,
            redirectUri: setting('REDIRECT_URI') as string | undefined,
            url: setting('URL') as string | undefined,
          },
        ]
      }),
    ) as Record<ExternalProvider, ExternalProviderSettings>,
  }
}

export interface ExternalProviderSettings {
  enabled: boolean
  clientId: string | undefined
  secret: string | undefined
  redirectUri: string | undefined
  url: string | undefined
}

/** One record out of one small record per key. */
function forEach<Key extends string, Entry, Made>(
  table: Record<Key, Entry>,
  make: (key: Key, entry: Entry) => Record<string, Made>,
): Record<string, Made> {
  return Object.assign({}, ...Object.keys(table).map((key) => make(key as Key, table[key as Key])))
}

function parseNamespace(value: string): string {
  if (!/^([a-z][a-z0-9_]{0,30})?$/.test(value)) {
    throw new Error('must be up to 31 lower-case letters, digits and underscores, starting with a letter')
  }
  return value
}

function parseLocale(value: string): string {
  const locale = value.trim().toLowerCase()
  if (!isLocale(locale)) throw new Error('must be a language tag such as en or pt-br')
  return locale
}

function parseLocales(value: string): string[] {
  const locales = value.split(',').filter((part) => part.trim() !== '')
  if (locales.length > 100) throw new Error('must not have more than 100 languages')
  return locales.map(parseLocale)
}

/** Ours, or such as would change where a mail goes or how it is read. */
const RESERVED_HEADERS =
  /^(from|to|cc|bcc|sender|subject|date|message-id|mime-version|content-.*|received|return-path|auto-submitted|dkim-signature)$/i

/** Names with one text each or several; the texts are ASCII or will be encoded, on one line. */
export function parseMailHeaders(value: string): Record<string, string[]> {
  const refuse = () => {
    throw new Error(
      'must be a JSON object of header names with texts or lists of texts, none of which the service sets',
    )
  }
  let headers: unknown
  try {
    headers = JSON.parse(value)
  } catch {
    refuse()
  }
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) refuse()
  const entries = Object.entries(headers as object).map(([name, texts]) => [name, [texts].flat()] as const)
  for (const [name, texts] of entries) {
    const isFit = /^[A-Za-z0-9-]{1,76}$/.test(name) && !RESERVED_HEADERS.test(name)
    if (!isFit || !texts.every((text) => typeof text === 'string' && !/[\r\n\0]/.test(text))) refuse()
  }
  return Object.fromEntries(entries) as Record<string, string[]>
}

function parseSecret(value: string): string {
  // RFC 7518 section 3.2 asks for 32 bytes; shorter secrets exist in the field, a dictionary word must not pass.
  if (Buffer.byteLength(value) < 16) throw new Error('must be at least 16 bytes long')
  return value
}

export interface Rate {
  points: number
  seconds: number
}

function rate(value: string): Rate {
  const [points, period = '1h'] = value.split('/')
  const seconds = duration('').parse(period) as number
  if (!/^\d+$/.test(points as string) || seconds === 0) throw new Error('must be a number, or N/duration')
  return { points: Number(points), seconds }
}
