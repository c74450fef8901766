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
import type { Template } from './mail/template/template.ts'
import { parseRequiredCharacters } from './passwords/password-rules.ts'
import {
  parseHosts,
  parseLocale,
  parseLocales,
  parseMailHeaders,
  parseNamespace,
  parseRate,
  parseRates,
  parseSecret,
} from './setting-parsers.ts'
import { parseCountries } from './sms/countries.ts'
import { httpGatewayProblems } from './sms/http-gateway.ts'
import { parseHttpBody, parseHttpGatewayUrl, parseHttpHeaders, parseSuccessRule } from './sms/http-settings.ts'
import { parseSmsTemplate } from './sms/sms-text.ts'
import { parseMoment, parseTestNumbers } from './sms/test-numbers.ts'

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

/** Who can deliver SMS, as SMS_PROVIDER lists them; `http` is any other one, described by SMS_HTTP_…. */
export const SMS_PROVIDERS = ['twilio', 'messagebird', 'vonage', 'textlocal', 'http'] as const
export type SmsProvider = (typeof SMS_PROVIDERS)[number]

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
  API_MAX_REQUEST_DURATION: duration('A request running longer is answered 504, and its transaction undone.', {
    default: '10s',
    positive: true,
  }),
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
  EXTERNAL_EMAIL_MAGIC_LINK_ENABLED: boolean('Sign-in by mailed link or code.', { default: 'true' }),
  EXTERNAL_FLOW_STATE_EXPIRY_DURATION: duration(
    'Validity of the code a PKCE link is exchanged through, from the click.',
    {
      default: '300',
      positive: true,
    },
  ),
  EXTERNAL_PHONE_ENABLED: boolean('Phone sign-up and sign-in, where an SMS gateway is configured.', {
    default: 'true',
  }),
  EXTERNAL_ANONYMOUS_USERS_ENABLED: boolean('Anonymous sign-in.', { default: 'false' }),
  PASSWORD_MIN_LENGTH: integer('Shortest password, in bytes.', { default: '6', min: 1, max: 1024 }),
  PASSWORD_REQUIRED_CHARACTERS: parsed(
    'string',
    'Sets of characters separated by `:`; a password needs one of each. `\\:` is a colon.',
    { default: '' },
    parseRequiredCharacters,
  ),
  PASSWORD_HIBP_ENABLED: boolean('Refuse new passwords known from leaks; asks by five digits of the hash.', {
    default: 'false',
  }),
  PASSWORD_HIBP_URL: httpUrl('Base address of the list of leaked passwords (`/range/{prefix}` is added).', {
    default: 'https://api.pwnedpasswords.com',
  }),
  PASSWORD_HIBP_FAIL_CLOSED: boolean('Refuse new passwords while that list cannot be asked.', { default: 'false' }),
  PASSWORD_HASH_MEMORY_KIB: integer('argon2id memory.', { default: '19456', min: 8, max: 4_194_304 }),
  PASSWORD_HASH_PASSES: integer('argon2id passes.', { default: '2', min: 2, max: 100 }),
  PASSWORD_HASH_LANES: integer('argon2id lanes.', { default: '1', min: 1, max: 64 }),
  SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: boolean('A new password needs a nonce from /reauthenticate.', {
    default: 'false',
  }),
  SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: boolean(
    'A new password needs the current one, but for sessions begun by a mailed link or code.',
    { default: 'false' },
  ),
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
    parseRate,
  ),
  RATE_LIMIT_SMS_SENT: parsed(
    'rate',
    'SMS to all numbers: so many per hour, or `N/duration` for N per duration.',
    { default: '360' },
    parseRate,
  ),
  RATE_LIMIT_TOKEN_REFRESH: integer('POST /token per address and 5 minutes.', { default: '150', min: 1 }),
  RATE_LIMIT_VERIFY: integer('/verify per address and 5 minutes.', { default: '30', min: 1 }),
  RATE_LIMIT_OTP: integer('Sign-up, mail-sending and PUT /user calls per address and 5 minutes.', {
    default: '30',
    min: 1,
  }),
  RATE_LIMIT_ANONYMOUS_USERS: integer('Anonymous sign-ins per address and hour.', { default: '30', min: 1 }),
  RATE_LIMIT_FAILED_SIGN_INS: integer(
    'Wrong passwords per account and client address before each further one doubles the wait, from 1 s to 15 min.',
    { default: '5', min: 1 },
  ),

  SECURITY_CAPTCHA_ENABLED: boolean('Demand a captcha on public endpoints.', { default: 'false' }),
  SECURITY_CAPTCHA_PROVIDER: oneOf(['hcaptcha', 'turnstile'], 'Who checks captchas.', { default: 'hcaptcha' }),
  SECURITY_CAPTCHA_SECRET: text("The captcha provider's secret; required when enabled."),
  SECURITY_CAPTCHA_TIMEOUT: duration('Longest wait for the captcha provider.', { default: '10s', positive: true }),
  SECURITY_CAPTCHA_URL: httpUrl("Where captchas are checked; the provider's own address when unset."),

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
  MAILER_SIGN_IN_LINK_MAX_FREQUENCY: duration('Least time between sign-in or recovery mails to one address.', {
    default: '60',
  }),
  MAILER_SECURE_EMAIL_CHANGE_ENABLED: boolean('The old and the new address must both agree to a change of address.', {
    default: 'true',
  }),
  MAILER_AUTOCONFIRM: boolean('E-mail addresses count as confirmed at sign-up.', { default: 'false' }),
  MAILER_OTP_EXP: duration('Validity of mail links and codes.', { default: '3600', positive: true }),
  MAILER_INVITE_EXP: duration('Validity of invitations.', { default: '168h', positive: true }),
  MAILER_OTP_LENGTH: integer('Digits of mailed codes.', { default: '6', min: 6, max: 10 }),
  MAILER_LINK_CONFIRMATION_PAGE: boolean(
    'Mail links open a page whose button confirms, instead of confirming at once.',
    {
      default: 'false',
    },
  ),
  MAILER_EXTERNAL_HOSTS: parsed(
    'list',
    'Further host names this service is reachable under; a mail link starts with the one its request came to.',
    { default: '' },
    parseHosts,
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
  SMS_TEMPLATE: parsed(
    'template',
    'Text of SMS; `{{ .Code }}` is the code.',
    { default: 'Your code is {{ .Code }}' },
    parseSmsTemplate,
  ),
  SMS_TEST_OTP: parsed(
    'list',
    'Numbers with a fixed code, to which nothing is sent: `phone:code,phone:code`.',
    { default: '' },
    parseTestNumbers,
  ),
  SMS_TEST_OTP_VALID_UNTIL: parsed('time', 'End of the fixed codes, such as `2030-01-31T00:00:00Z`.', {}, parseMoment),
  SMS_COUNTRIES: parsed(
    'list',
    'Calling codes that get SMS, such as `+49,+1,!+1876`; `!` excludes, the longest match decides. Empty: all.',
    { default: '' },
    parseCountries,
  ),
  SMS_MAX_PER_NUMBER: parsed('rates', 'SMS to one number, known or not.', { default: '5/1h,10/24h' }, parseRates),
  SMS_MAX_PER_PREFIX: parsed(
    'rate',
    'SMS to numbers that differ in the last four digits only: so many per hour, or `N/duration`.',
    { default: '20' },
    parseRate,
  ),
  SMS_DAILY_BUDGET: integer('SMS to all numbers in 24 hours; no limit when unset.', {}),
  SMS_TIMEOUT: duration('Longest wait for a gateway.', { default: '10s', positive: true }),
  SMS_PROVIDER: parsed(
    `list of ${SMS_PROVIDERS.join(', ')}`,
    'Who delivers SMS; the next one is tried when one fails.',
    { default: '' },
    smsProviders,
  ),
  SMS_TWILIO_ACCOUNT_SID: text('Twilio account; required when listed.'),
  SMS_TWILIO_AUTH_TOKEN: text('Twilio token; required when listed.'),
  SMS_TWILIO_MESSAGE_SERVICE_SID: text('Twilio messaging service (`MG…`) or sender; required when listed.'),
  SMS_TWILIO_CONTENT_SID: text('Twilio content template of WhatsApp messages; its variable 1 is the code.'),
  SMS_TWILIO_URL: httpUrl('Base address of Twilio.', { default: 'https://api.twilio.com' }),
  SMS_MESSAGEBIRD_ACCESS_KEY: text('MessageBird access key; required when listed.'),
  SMS_MESSAGEBIRD_ORIGINATOR: text('MessageBird originator; required when listed.'),
  SMS_MESSAGEBIRD_URL: httpUrl('Base address of MessageBird.', { default: 'https://rest.messagebird.com' }),
  SMS_VONAGE_API_KEY: text('Vonage key; required when listed.'),
  SMS_VONAGE_API_SECRET: text('Vonage secret; required when listed.'),
  SMS_VONAGE_FROM: text('Vonage sender; required when listed.'),
  SMS_VONAGE_URL: httpUrl('Base address of Vonage.', { default: 'https://rest.nexmo.com' }),
  SMS_TEXTLOCAL_API_KEY: text('TextLocal key; required when listed.'),
  SMS_TEXTLOCAL_SENDER: text('TextLocal sender; required when listed.'),
  SMS_TEXTLOCAL_URL: httpUrl('Base address of TextLocal.', { default: 'https://api.textlocal.in' }),
  SMS_HTTP_URL: parsed(
    'URL',
    'Address of the generic gateway; required when listed. May hold the placeholders of SMS_HTTP_BODY.',
    {},
    parseHttpGatewayUrl,
  ),
  SMS_HTTP_METHOD: oneOf(['post', 'put', 'get'], 'Method of its requests; `get` sends no body.', { default: 'post' }),
  SMS_HTTP_HEADERS: parsed(
    'JSON',
    'Its headers as an object; `content-type` is JSON (unset) or form.',
    { default: '{}' },
    parseHttpHeaders,
  ),
  SMS_HTTP_BODY: parsed(
    'template',
    'Its body; `{{ .To }}` (digits), `{{ .Text }}`, `{{ .Code }}`, `{{ .MessageID }}` are escaped as the content type asks.',
    { default: '{"to":"{{ .To }}","text":"{{ .Text }}"}' },
    parseHttpBody,
  ),
  SMS_HTTP_SUCCESS: parsed(
    'list',
    'When it took a message over: statuses and facts of its JSON answer, such as `200-299,result.status=ok`.',
    { default: '200-299' },
    parseSuccessRule,
  ),
  SMS_HTTP_MESSAGE_ID: text("Path of the message's id in its JSON answer, such as `messages.0.id`."),

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
  const problems = [
    ...mailProblems(values),
    ...captchaProblems(values),
    ...providerProblems(values),
    ...smsProblems(values),
  ]
  if (problems.length > 0) throw new ConfigError(problems)
  return { config: groupConfig(values), warnings: [...warnings, ...settingsToNote(values)] }
}

/** Settings to look at twice: without effect because inherited or not there yet, or fit for tests only. */
function settingsToNote(values: RawConfig): string[] {
  const inherited = (['OPERATOR_TOKEN', 'API_ENDPOINT'] as const).filter((name) => values[name] !== undefined)
  const later = Object.entries(values)
    .filter(([name, value]) => value && LATER.test(name))
    .map(([name]) => name)
  return [
    ...inherited.map((name) => `AUTH_${name} is inherited and has no effect`),
    ...testNumberWarnings(values),
    ...later.map((name) => `AUTH_${name} has no effect in this version: its feature is not there yet`),
  ]
}

function testNumberWarnings({ SMS_TEST_OTP: codes, SMS_TEST_OTP_VALID_UNTIL: end }: RawConfig): string[] {
  if (codes.size === 0) return []
  const until = end ? `until ${end.toISOString()}` : 'without an end (AUTH_SMS_TEST_OTP_VALID_UNTIL)'
  return [`AUTH_SMS_TEST_OTP lets ${codes.size} phone number(s) sign in with a fixed code, ${until}`]
}

/** Read and checked already, so that a configuration stays valid when the feature arrives. */
const LATER = /^(EXTERNAL_(?!EMAIL|PHONE|ANONYMOUS)\w+_ENABLED)$/

/** Whether a code could reach anybody, or none is needed. */
const canReachPhones = (values: RawConfig) =>
  values.SMS_PROVIDER.length > 0 || values.SMS_AUTOCONFIRM || values.SMS_TEST_OTP.size > 0

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

const SMS_CREDENTIALS = {
  twilio: ['SMS_TWILIO_ACCOUNT_SID', 'SMS_TWILIO_AUTH_TOKEN', 'SMS_TWILIO_MESSAGE_SERVICE_SID'],
  messagebird: ['SMS_MESSAGEBIRD_ACCESS_KEY', 'SMS_MESSAGEBIRD_ORIGINATOR'],
  vonage: ['SMS_VONAGE_API_KEY', 'SMS_VONAGE_API_SECRET', 'SMS_VONAGE_FROM'],
  textlocal: ['SMS_TEXTLOCAL_API_KEY', 'SMS_TEXTLOCAL_SENDER'],
  http: ['SMS_HTTP_URL'],
} as const satisfies Record<SmsProvider, readonly (keyof RawConfig)[]>

function smsProblems(values: RawConfig): string[] {
  const missing = values.SMS_PROVIDER.flatMap((provider) =>
    SMS_CREDENTIALS[provider]
      .filter((name) => values[name] === undefined)
      .map((name) => `AUTH_${name} is required while AUTH_SMS_PROVIDER lists ${provider}`),
  )
  const { SMS_TWILIO_ACCOUNT_SID: account, SMS_HTTP_URL: httpAddress } = values
  // Twilio's SDK refuses any other with the first message.
  const isOtherSid = values.SMS_PROVIDER.includes('twilio') && account !== undefined && !account.startsWith('AC')
  const hasHttp = values.SMS_PROVIDER.includes('http') && httpAddress !== undefined
  return [
    ...missing,
    ...(isOtherSid ? ['AUTH_SMS_TWILIO_ACCOUNT_SID must start with AC'] : []),
    ...(hasHttp ? httpGatewayProblems(httpGatewaySettings(values)) : []),
  ]
}

const httpGatewaySettings = (values: RawConfig) => ({
  url: values.SMS_HTTP_URL ?? '',
  method: values.SMS_HTTP_METHOD.toUpperCase(),
  headers: values.SMS_HTTP_HEADERS,
  body: values.SMS_HTTP_BODY,
  success: values.SMS_HTTP_SUCCESS,
  messageIdPath: values.SMS_HTTP_MESSAGE_ID,
})

function groupConfig(values: RawConfig) {
  const settings = values as Record<string, unknown>
  return {
    siteUrl: values.SITE_URL,
    redirectAllowList: values.URI_ALLOW_LIST,
    server: {
      externalUrl: values.API_EXTERNAL_URL,
      externalHosts: values.MAILER_EXTERNAL_HOSTS,
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
      magicLinks: values.EXTERNAL_EMAIL_MAGIC_LINK_ENABLED,
      pkceCodeLifetimeSeconds: values.EXTERNAL_FLOW_STATE_EXPIRY_DURATION,
      // Without a gateway a code could reach nobody.
      phone: values.EXTERNAL_PHONE_ENABLED && canReachPhones(values),
      anonymous: values.EXTERNAL_ANONYMOUS_USERS_ENABLED,
    },
    passwords: {
      minLength: values.PASSWORD_MIN_LENGTH,
      requiredCharacters: values.PASSWORD_REQUIRED_CHARACTERS,
      requireCurrent: values.SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD,
      requireReauthentication: values.SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION,
      leaks: {
        enabled: values.PASSWORD_HIBP_ENABLED,
        url: values.PASSWORD_HIBP_URL,
        failClosed: values.PASSWORD_HIBP_FAIL_CLOSED,
      },
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
      freeWrongPasswords: values.RATE_LIMIT_FAILED_SIGN_INS,
    },
    captcha: {
      enabled: values.SECURITY_CAPTCHA_ENABLED,
      provider: values.SECURITY_CAPTCHA_PROVIDER,
      secret: values.SECURITY_CAPTCHA_SECRET?.trim(),
      timeoutSeconds: values.SECURITY_CAPTCHA_TIMEOUT,
      url: values.SECURITY_CAPTCHA_URL,
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
      signInLinkGapSeconds: values.MAILER_SIGN_IN_LINK_MAX_FREQUENCY,
      secureEmailChange: values.MAILER_SECURE_EMAIL_CHANGE_ENABLED,
      codeLifetimeSeconds: values.MAILER_OTP_EXP,
      inviteLifetimeSeconds: values.MAILER_INVITE_EXP,
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
      providers: values.SMS_PROVIDER,
      autoconfirm: values.SMS_AUTOCONFIRM,
      minGapSeconds: values.SMS_MAX_FREQUENCY,
      codeLifetimeSeconds: values.SMS_OTP_EXP,
      codeLength: values.SMS_OTP_LENGTH,
      template: values.SMS_TEMPLATE,
      testNumbers: { codes: values.SMS_TEST_OTP, validUntil: values.SMS_TEST_OTP_VALID_UNTIL },
      guards: {
        countries: values.SMS_COUNTRIES,
        maxPerNumber: values.SMS_MAX_PER_NUMBER,
        maxPerPrefix: values.SMS_MAX_PER_PREFIX,
        dailyBudget: values.SMS_DAILY_BUDGET,
        sent: values.RATE_LIMIT_SMS_SENT,
      },
      timeoutSeconds: values.SMS_TIMEOUT,
      // Empty only where the gateway is not listed: smsProblems has seen to that.
      twilio: {
        url: values.SMS_TWILIO_URL,
        accountSid: values.SMS_TWILIO_ACCOUNT_SID ?? '',
        authToken: values.SMS_TWILIO_AUTH_TOKEN ?? '',
        sender: values.SMS_TWILIO_MESSAGE_SERVICE_SID ?? '',
        contentSid: values.SMS_TWILIO_CONTENT_SID,
      },
      messagebird: {
        url: values.SMS_MESSAGEBIRD_URL,
        accessKey: values.SMS_MESSAGEBIRD_ACCESS_KEY ?? '',
        originator: values.SMS_MESSAGEBIRD_ORIGINATOR ?? '',
      },
      vonage: {
        url: values.SMS_VONAGE_URL,
        apiKey: values.SMS_VONAGE_API_KEY ?? '',
        apiSecret: values.SMS_VONAGE_API_SECRET ?? '',
        from: values.SMS_VONAGE_FROM ?? '',
      },
      textlocal: {
        url: values.SMS_TEXTLOCAL_URL,
        apiKey: values.SMS_TEXTLOCAL_API_KEY ?? '',
        sender: values.SMS_TEXTLOCAL_SENDER ?? '',
      },
      http: httpGatewaySettings(values),
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

function smsProviders(value: string): SmsProvider[] {
  const names = value
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean)
  const providers = SMS_PROVIDERS.filter((provider) => names.includes(provider))
  if (names.length !== providers.length) throw new Error(`must list, each once, some of ${SMS_PROVIDERS.join(', ')}`)
  return providers.toSorted((a, b) => names.indexOf(a) - names.indexOf(b))
}
