import { ConfigError } from '@services/common/config/variables'
import { describe, expect, test } from 'vitest'
import { PASSKEYS } from '../test/webauthn/passkeys.ts'
import { settingsToReview } from './config/review.ts'
import { readConfig, variables } from './config.ts'

const REQUIRED = {
  AUTH_SITE_URL: 'https://site.example',
  AUTH_API_EXTERNAL_URL: 'https://auth.example/',
  AUTH_DATABASE_URL: 'postgres://localhost/auth',
  AUTH_JWT_SECRET: 'a-secret-of-the-tests-with-32-bytes-or-more',
  AUTH_SMTP_HOST: 'mail.example',
  AUTH_SMTP_PORT: '587',
  AUTH_SMTP_ADMIN_EMAIL: 'auth@site.example',
}

const TWILIO = {
  AUTH_SMS_PROVIDER: 'twilio',
  AUTH_SMS_TWILIO_AUTH_TOKEN: 'x',
  AUTH_SMS_TWILIO_MESSAGE_SERVICE_SID: 'MG1',
}
const NOTICE = { AUTH_SMS_ACCOUNT_EXISTS_ENABLED: 'true' }
const HTTP = { AUTH_SMS_PROVIDER: 'http', AUTH_SMS_HTTP_URL: 'https://sms.example/' }

test('a wrong value hides no problem of others, and none is reported that only its default has', () => {
  const settings = { AUTH_WEBHOOK_URL: 'https://app.example/events', AUTH_WEBHOOK_SECRET: 'whsec_AAAA' }
  expect(problemsOf({ ...settings, AUTH_JWT_EXP: 'long', AUTH_AUDIT_PII_RETENTION: '1h' })).toEqual([
    expect.stringMatching(/^AUTH_JWT_EXP must be /),
    expect.stringMatching(/^AUTH_WEBHOOK_SECRET must be /),
    'AUTH_AUDIT_PII_RETENTION must be at least 24h',
  ])
})

function problemsOf(settings: Record<string, string>): readonly string[] {
  try {
    readConfig({ ...REQUIRED, ...settings })
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

const gapsOf = (settings: Record<string, string>) => readConfig({ ...REQUIRED, ...settings }).config.gaps

test('a notice of an account leaves by gateways that send texts, and a gateway of codes alone serves without it', () => {
  const codesAlone = { ...HTTP, AUTH_SMS_HTTP_BODY: '{"to":"{{ .To }}","c":"{{ .Code }}"}' }
  const template = { ...TWILIO, AUTH_SMS_TWILIO_ACCOUNT_SID: 'AC1', AUTH_SMS_TWILIO_CONTENT_SID: 'HX1' }
  for (const settings of [{ ...HTTP, ...NOTICE }, { ...TWILIO, ...NOTICE }, codesAlone, template]) {
    expect(problemsOf(settings)).toEqual([])
  }
})

test('the console has the sign-in of the hosted pages, and no port that another part has', () => {
  const pages = { AUTH_CONSOLE_ENABLED: 'true', AUTH_HOSTED_PAGES_ENABLED: 'true' }
  expect(problemsOf({ ...pages, AUTH_CONSOLE_PORT: '8090' })).toEqual([])
  expect(problemsOf({ ...pages, AUTH_CONSOLE_PORT: '8081' })).toEqual(['AUTH_CONSOLE_PORT must differ from AUTH_PORT'])
  expect(problemsOf({ AUTH_CONSOLE_ENABLED: 'true' })).toEqual([
    'AUTH_CONSOLE_ENABLED requires AUTH_HOSTED_PAGES_ENABLED, whose sign-in it uses',
  ])
  const review = (more: Record<string, string>) =>
    settingsToReview(readConfig({ ...REQUIRED, ...pages, ...more }).config).filter((each) => each.includes('CONSOLE'))
  expect(review({ AUTH_CONSOLE_REQUIRE_MFA: 'false' })).toHaveLength(1)
  expect([review({}), review({ AUTH_CONSOLE_REQUIRE_MFA: 'false', AUTH_MFA_REQUIRED_FOR: 'admins' })]).toEqual([[], []])
})

test('tokens of applications that no scope binds are to review', () => {
  const review = (full: string) => {
    const oauth = { AUTH_OAUTH_SERVER_ENABLED: 'true', AUTH_OAUTH_SERVER_FULL_USER_TOKENS: full }
    const { config } = readConfig({ ...REQUIRED, ...oauth, AUTH_HOSTED_PAGES_ENABLED: 'true' })
    return settingsToReview(config).filter((line) => line.startsWith('AUTH_OAUTH_SERVER_FULL_USER_TOKENS'))
  }
  expect([review('true').length, review('false')]).toEqual([1, []])
})

test('every variable of the specification is read', () => {
  const named = `SITE_URL URI_ALLOW_LIST OPERATOR_TOKEN DISABLE_SIGNUP EXTERNAL_EMAIL_ENABLED EXTERNAL_PHONE_ENABLED
    RATE_LIMIT_HEADER RATE_LIMIT_EMAIL_SENT PASSWORD_MIN_LENGTH PASSWORD_REQUIRED_CHARACTERS
    SECURITY_REFRESH_TOKEN_ROTATION_ENABLED SECURITY_REFRESH_TOKEN_REUSE_INTERVAL API_HOST PORT API_ENDPOINT
    API_EXTERNAL_URL REQUEST_ID_HEADER DB_DRIVER DATABASE_URL DB_MAX_POOL_SIZE DB_NAMESPACE LOG_LEVEL LOG_FILE
    TRACING_ENABLED TRACING_EXPORTER METRICS_ENABLED METRICS_EXPORTER OTEL_EXPORTER_PROMETHEUS_HOST
    OTEL_EXPORTER_PROMETHEUS_PORT DEBUG JWT_SECRET JWT_EXP JWT_AUD JWT_ADMIN_GROUP_NAME JWT_DEFAULT_GROUP_NAME
    JWT_ADMIN_ROLES SMTP_ADMIN_EMAIL SMTP_HOST SMTP_PORT SMTP_USER SMTP_PASS SMTP_MAX_FREQUENCY SMTP_SENDER_NAME
    MAILER_AUTOCONFIRM MAILER_OTP_EXP MAILER_URLPATHS_INVITE MAILER_URLPATHS_CONFIRMATION MAILER_URLPATHS_RECOVERY
    MAILER_URLPATHS_EMAIL_CHANGE MAILER_SUBJECTS_CONFIRMATION MAILER_TEMPLATES_MAGIC_LINK
    MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED MAILER_NOTIFICATIONS_MFA_FACTOR_UNENROLLED_ENABLED SMS_AUTOCONFIRM
    SMS_MAX_FREQUENCY SMS_OTP_EXP SMS_OTP_LENGTH SMS_PROVIDER SECURITY_CAPTCHA_ENABLED SECURITY_CAPTCHA_PROVIDER
    SECURITY_CAPTCHA_SECRET SECURITY_CAPTCHA_TIMEOUT SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION
    EXTERNAL_ANONYMOUS_USERS_ENABLED SECURITY_SB_FORWARDED_FOR_ENABLED EXTERNAL_APPLE_ENABLED EXTERNAL_WORKOS_CLIENT_ID
    EXTERNAL_KEYCLOAK_URL EXTERNAL_TWITTER_REDIRECT_URI EXTERNAL_GITLAB_SECRET`.split(/\s+/)
  for (const name of named) expect(Object.keys(variables)).toContain(name)
})

test.each(['API_EXTERNAL_URL', 'PASSWORD_HIBP_URL', 'SMS_TWILIO_URL', 'EXTERNAL_KEYCLOAK_URL'])(
  '%s cannot hold what addresses made from it would: user name, query, fragment',
  (name) => {
    for (const url of ['https://a:hunter2@x.example', 'https://x.example/?a=hunter2', 'https://x.example/#hunter2']) {
      const problems = problemsOf({ [`AUTH_${name}`]: url }).filter((problem) =>
        problem.startsWith(`AUTH_${name} must`),
      )
      expect(problems).toHaveLength(1)
      expect(problems.join()).not.toContain('hunter2')
    }
  },
)

test('the prefixed name wins over the bare one, the environment over the file, and empty means unset', () => {
  const read = (environment: Record<string, string>, file: Record<string, string> = {}) =>
    readConfig({ ...REQUIRED, ...environment }, file).config.server.port
  expect(read({})).toBe(8081)
  expect(read({ PORT: '1' })).toBe(1)
  expect(read({ API_PORT: '2' })).toBe(2)
  expect(read({ AUTH_PORT: '3', PORT: '1' })).toBe(3)
  expect(read({ PORT: '1' }, { AUTH_PORT: '4' })).toBe(1)
  expect(read({ AUTH_PORT: '' }, { AUTH_PORT: '4' })).toBe(4)
})

test.each([',', ' , ', 'somebody', 'a@example.com;b@example.com', 'Somebody <a@example.com>'])(
  'a list of authorized addresses that is none (%j) is refused, not read as no list',
  (value) => {
    const problems = problemsOf({ AUTH_EXTERNAL_EMAIL_AUTHORIZED_ADDRESSES: value })
    expect(problems).toEqual([expect.stringMatching(/^AUTH_EXTERNAL_EMAIL_AUTHORIZED_ADDRESSES must /)])
    expect(problems.join()).not.toMatch(/somebody|example/i)
  },
)

test('durations are seconds, 7d or 1h30m', () => {
  const lifetime = (value: string) => readConfig({ ...REQUIRED, AUTH_JWT_EXP: value }).config.jwt.lifetimeSeconds
  expect([lifetime('60'), lifetime('1h30m'), lifetime('90s'), lifetime('1.5h')]).toEqual([60, 5400, 90, 5400])
  expect([lifetime('7d'), lifetime('2w')]).toEqual([604_800, 1_209_600])
  const units = 'seconds, or a duration such as 7d or 1h30m (units w, d, h, m, s, ms)'
  expect(problemsOf({ AUTH_JWT_EXP: '1 month' })).toEqual([`AUTH_JWT_EXP must be ${units}`])
})

describe('a start is refused', () => {
  test.for<[string, Record<string, string>, string]>([
    ['without the mail server while e-mail is on', { AUTH_SMTP_HOST: '' }, 'AUTH_SMTP_HOST'],
    [
      'with a sender that is no address',
      { AUTH_SMTP_ADMIN_EMAIL: 'Auth <auth@site.example>' },
      'AUTH_SMTP_ADMIN_EMAIL',
    ],
    ['that deletes audit entries of a day', { AUTH_AUDIT_KEEP: '23h' }, 'AUTH_AUDIT_KEEP must be at least 24h'],
    [
      'that erases on the next day',
      { AUTH_AUDIT_PII_RETENTION: '23h' },
      'AUTH_AUDIT_PII_RETENTION must be at least 24h',
    ],
    [
      'that would erase what is deleted already',
      { AUTH_AUDIT_PII_RETENTION: '48h', AUTH_AUDIT_KEEP: '48h' },
      'AUTH_AUDIT_PII_RETENTION must be shorter than AUTH_AUDIT_KEEP',
    ],
    ['with a secret of 15 bytes', { AUTH_JWT_SECRET: 'x'.repeat(15) }, 'AUTH_JWT_SECRET must be at least 16'],
    ['with a key of 15 bytes', { AUTH_ENCRYPTION_KEY: 'x'.repeat(15) }, 'AUTH_ENCRYPTION_KEY must be at least 16'],
    [
      'with an encryption key of 31 bytes',
      { AUTH_ENCRYPTION_KEYS: `a:${Buffer.alloc(31).toString('base64')}` },
      'AUTH_ENCRYPTION_KEYS must have keys of 32 bytes',
    ],
    ['with a captcha but no secret', { AUTH_SECURITY_CAPTCHA_ENABLED: 'true' }, 'AUTH_SECURITY_CAPTCHA_SECRET'],
    ['with another database', { AUTH_DB_DRIVER: 'mysql' }, 'AUTH_DB_DRIVER'],
    ['with a namespace that is no name', { AUTH_DB_NAMESPACE: 'a; drop table users' }, 'AUTH_DB_NAMESPACE'],
    ['with a namespace that PostgreSQL keeps to itself', { AUTH_DB_NAMESPACE: 'pg' }, 'AUTH_DB_NAMESPACE'],
    ['with a site that lacks its scheme', { AUTH_SITE_URL: 'localhost:3000' }, 'AUTH_SITE_URL must be'],
    [
      'with a confirmation page for links that no mail has',
      { AUTH_MAILER_LINK_CONFIRMATION_PAGE: 'signup,sms' },
      'AUTH_MAILER_LINK_CONFIRMATION_PAGE must be true, false or a list of signup, invite, recovery, magiclink, email_change',
    ],
    ['with a site that is a script', { AUTH_SITE_URL: 'javascript:alert(1)' }, 'AUTH_SITE_URL must be'],
    ['with keys that are no JSON', { AUTH_JWT_KEYS: 'nonsense' }, 'AUTH_JWT_KEYS'],
    [
      'with two signing keys',
      { AUTH_JWT_KEYS: '[{"kid":"a","alg":"RS256","key_ops":["sign"]},{"kid":"b","alg":"RS256","key_ops":["sign"]}]' },
      'AUTH_JWT_KEYS',
    ],
    ['with a key of alg none', { AUTH_JWT_KEYS: '[{"kid":"a","alg":"none","key_ops":["sign"]}]' }, 'AUTH_JWT_KEYS'],
    ['with a rate that is none', { AUTH_RATE_LIMIT_EMAIL_SENT: 'many' }, 'AUTH_RATE_LIMIT_EMAIL_SENT'],
    ['with a rate of three parts', { AUTH_RATE_LIMIT_EMAIL_SENT: '10/1h/2' }, 'AUTH_RATE_LIMIT_EMAIL_SENT'],
    ['with a rate nobody counts to', { AUTH_RATE_LIMIT_EMAIL_SENT: '9'.repeat(400) }, 'AUTH_RATE_LIMIT_EMAIL_SENT'],
    [
      'with a duration past the end of all times',
      { AUTH_MAILER_OTP_EXP: '99999999999h' },
      'AUTH_MAILER_OTP_EXP must be at most',
    ],
    [
      'with a path of links that is no address',
      { AUTH_MAILER_URLPATHS_INVITE: 'https://' },
      'AUTH_MAILER_URLPATHS_INVITE',
    ],
    ['with a rate forever', { AUTH_RATE_LIMIT_EMAIL_SENT: `1/${'9'.repeat(400)}` }, 'AUTH_RATE_LIMIT_EMAIL_SENT'],
    [
      'with a request time that no timer holds',
      { AUTH_API_MAX_REQUEST_DURATION: '600h' },
      'AUTH_API_MAX_REQUEST_DURATION must be at most 1h',
    ],
    [
      'with a redirect pattern of a wrong range',
      { AUTH_URI_ALLOW_LIST: 'https://[z-a].x/' },
      'AUTH_URI_ALLOW_LIST has',
    ],
    ['with an unbalanced redirect pattern', { AUTH_URI_ALLOW_LIST: 'https://{a.example/**' }, 'AUTH_URI_ALLOW_LIST'],
    ['with an SMS gateway nobody knows', { AUTH_SMS_PROVIDER: 'twilio2' }, 'AUTH_SMS_PROVIDER'],
    ['with an SMS gateway twice', { AUTH_SMS_PROVIDER: 'http,http' }, 'AUTH_SMS_PROVIDER'],
    ['with another account id than Twilio has', { ...TWILIO, AUTH_SMS_TWILIO_ACCOUNT_SID: 'SK1' }, 'ACCOUNT_SID'],
    ['with an SMS text without its code', { AUTH_SMS_TEMPLATE: 'Hello' }, 'AUTH_SMS_TEMPLATE'],
    [
      'with a notice without a code for a gateway that sends codes alone',
      { ...HTTP, ...NOTICE, AUTH_SMS_HTTP_BODY: '{"to":"{{ .To }}","c":"{{ .Code }}"}' },
      'AUTH_SMS_ACCOUNT_EXISTS_ENABLED',
    ],
    [
      'with the same for one without a body',
      { ...HTTP, ...NOTICE, AUTH_SMS_HTTP_METHOD: 'get', AUTH_SMS_HTTP_URL: 'https://a.example/{{ .To }}/{{ .Code }}' },
      'AUTH_SMS_ACCOUNT_EXISTS_ENABLED',
    ],
    [
      'with the same for a template of WhatsApp',
      { ...TWILIO, ...NOTICE, AUTH_SMS_TWILIO_ACCOUNT_SID: 'AC1', AUTH_SMS_TWILIO_CONTENT_SID: 'HX1' },
      'AUTH_SMS_TWILIO_CONTENT_SID',
    ],
    ['with countries that are none', { AUTH_SMS_COUNTRIES: 'DE' }, 'AUTH_SMS_COUNTRIES'],
    ['with test numbers that are none', { AUTH_SMS_TEST_OTP: 'x' }, 'AUTH_SMS_TEST_OTP'],
    ['with test addresses that are none', { AUTH_MAILER_TEST_OTP: 'x' }, 'AUTH_MAILER_TEST_OTP'],
    ['with an end that is no time', { AUTH_SMS_TEST_OTP_VALID_UNTIL: 'May' }, 'AUTH_SMS_TEST_OTP_VALID_UNTIL'],
    ['with a cap per number that is none', { AUTH_SMS_MAX_PER_NUMBER: '5/1h,7/60m' }, 'AUTH_SMS_MAX_PER_NUMBER'],
    ['with a client address in what is no header', { AUTH_RATE_LIMIT_HEADER: 'X-Real-IP:' }, 'AUTH_RATE_LIMIT_HEADER'],
    ['with a request id in what is no header', { AUTH_REQUEST_ID_HEADER: 'X Id' }, 'AUTH_REQUEST_ID_HEADER'],
    ['with headers that are no JSON', { AUTH_SMS_HTTP_HEADERS: 'a: b' }, 'AUTH_SMS_HTTP_HEADERS'],
    ['with a header of two lines', { AUTH_SMS_HTTP_HEADERS: '{"a":"b\\r\\nc: d"}' }, 'AUTH_SMS_HTTP_HEADERS'],
    ['with a body of unknown placeholders', { AUTH_SMS_HTTP_BODY: '{{ .Phone }}' }, 'AUTH_SMS_HTTP_BODY'],
    ['with a success rule that is none', { AUTH_SMS_HTTP_SUCCESS: '200,ok' }, 'AUTH_SMS_HTTP_SUCCESS'],
    ['with a success rule without a status', { AUTH_SMS_HTTP_SUCCESS: 'a=b' }, 'AUTH_SMS_HTTP_SUCCESS'],
    ['with a number that chooses the host', { AUTH_SMS_HTTP_URL: 'http://{{ .To }}.example/' }, 'AUTH_SMS_HTTP_URL'],
    [
      'with a body that is no JSON',
      { ...HTTP, AUTH_SMS_HTTP_BODY: 'to={{ .To }}&c={{ .Code }}' },
      'AUTH_SMS_HTTP_BODY',
    ],
    ['with a code outside quotes', { ...HTTP, AUTH_SMS_HTTP_BODY: '[{{ .To }},{{ .Code }}]' }, 'AUTH_SMS_HTTP_BODY'],
    ['with a body without a number', { ...HTTP, AUTH_SMS_HTTP_BODY: '"{{ .Text }}"' }, 'AUTH_SMS_HTTP_BODY'],
    ['with a body without a code', { ...HTTP, AUTH_SMS_HTTP_BODY: '"{{ .To }}"' }, 'AUTH_SMS_HTTP_BODY'],
    ['with a body of XML', { ...HTTP, AUTH_SMS_HTTP_HEADERS: '{"Content-Type":"text/xml"}' }, 'AUTH_SMS_HTTP_HEADERS'],
    ['with a subject that is no template', { AUTH_MAILER_SUBJECTS_INVITE: '{{ .A' }, 'AUTH_MAILER_SUBJECTS_INVITE'],
    ['with a language that is none', { AUTH_MAILER_DEFAULT_LOCALE: '../de' }, 'AUTH_MAILER_DEFAULT_LOCALE'],
    ['with languages that are none', { AUTH_MAILER_LOCALES: 'en, german language' }, 'AUTH_MAILER_LOCALES'],
    ['with clear text to a TLS port', { AUTH_SMTP_TLS: 'off', AUTH_SMTP_PORT: '465' }, 'AUTH_SMTP_TLS'],
    ['with an authority that is no file', { AUTH_SMTP_CA_FILE: '/none' }, 'AUTH_SMTP_CA_FILE cannot be read: ENOENT'],
    [
      'with an authority that is a device',
      { AUTH_SMTP_CA_FILE: '/dev/zero' },
      'AUTH_SMTP_CA_FILE must be a regular file',
    ],
    [
      'with an authority that is no certificate',
      { AUTH_SMTP_CA_FILE: import.meta.filename },
      'AUTH_SMTP_CA_FILE must be',
    ],
    ['with mail headers that are no JSON', { AUTH_SMTP_HEADERS: 'X-A: b' }, 'AUTH_SMTP_HEADERS'],
    ['with a mail header of ours', { AUTH_SMTP_HEADERS: '{"Bcc":"a@b.c"}' }, 'AUTH_SMTP_HEADERS'],
    ['with a mail header on two lines', { AUTH_SMTP_HEADERS: '{"X-A":"a\\r\\nBcc: b"}' }, 'AUTH_SMTP_HEADERS'],
    ['with a boolean that is none', { AUTH_DISABLE_SIGNUP: 'maybe' }, 'AUTH_DISABLE_SIGNUP'],
  ])('%s', ([, settings, name]) => {
    const problems = problemsOf(settings)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(name)
  })

  test('not by the credentials of an SMS gateway that is not listed', () => {
    expect(problemsOf({ AUTH_SMS_TWILIO_AUTH_TOKEN: 'x', AUTH_SMS_HTTP_BODY: 'not JSON' })).toEqual([])
  })

  test('not by the mail server when e-mail is off', () => {
    const off = {
      AUTH_EXTERNAL_EMAIL_ENABLED: 'false',
      AUTH_SMTP_HOST: '',
      AUTH_SMTP_PORT: '',
      AUTH_SMTP_ADMIN_EMAIL: '',
    }
    expect(problemsOf(off)).toEqual([])
  })
})

describe('credentials that what is switched on lacks are named, and keep no start', () => {
  const names = (settings: Record<string, string>) => gapsOf(settings).map((gap) => gap.split(' ')[0])

  test('of a provider', () => {
    const github = ['CLIENT_ID', 'SECRET', 'REDIRECT_URI'].map((name) => `AUTH_EXTERNAL_GITHUB_${name}`)
    expect(names({ AUTH_EXTERNAL_GITHUB_ENABLED: 'true', AUTH_EXTERNAL_GITHUB_SECRET: '' })).toEqual(github)
    expect(names({ AUTH_EXTERNAL_GITHUB_ENABLED: 'false' })).toEqual([])
  })

  test('of listed SMS gateways, of which those that are complete are used', () => {
    const all = { AUTH_SMS_PROVIDER: 'twilio, messagebird ,vonage,textlocal,http', AUTH_SMS_VONAGE_FROM: 'Site' }
    expect(names(all)).toEqual(
      `AUTH_SMS_TWILIO_ACCOUNT_SID AUTH_SMS_TWILIO_AUTH_TOKEN AUTH_SMS_TWILIO_MESSAGE_SERVICE_SID
      AUTH_SMS_MESSAGEBIRD_ACCESS_KEY AUTH_SMS_MESSAGEBIRD_ORIGINATOR AUTH_SMS_VONAGE_API_KEY AUTH_SMS_VONAGE_API_SECRET
      AUTH_SMS_TEXTLOCAL_API_KEY AUTH_SMS_TEXTLOCAL_SENDER AUTH_SMS_HTTP_URL`.split(/\s+/),
    )
    const some = { ...HTTP, AUTH_SMS_PROVIDER: 'twilio,http' }
    expect(readConfig({ ...REQUIRED, ...some }).config.sms.providers).toEqual(['http'])
  })
})

test('wallets: a useless switch is warned about, and an endless validity refused', () => {
  const warned = (settings: object) =>
    readConfig({ ...REQUIRED, AUTH_WEB3_REQUIRE_NONCE: 'true', ...settings }).warnings
  expect(warned({})).toEqual(['AUTH_WEB3_REQUIRE_NONCE has no effect while no AUTH_EXTERNAL_WEB3_*_ENABLED is set'])
  expect(warned({ AUTH_EXTERNAL_WEB3_SOLANA_ENABLED: 'true' })).toEqual([])
  const name = 'AUTH_EXTERNAL_WEB3_ETHEREUM_MAXIMUM_VALIDITY_DURATION'
  expect(problemsOf({ [name]: '25h' })).toEqual([expect.stringMatching(`^${name} must be at most 24h`)])
  expect(problemsOf({ [name]: '0' })).toEqual([expect.stringMatching(`^${name} must be more than zero`)])
})

describe('the relying party', () => {
  const party = (AUTH_WEBAUTHN_RP_ID: string, AUTH_WEBAUTHN_RP_ORIGINS: string) => ({
    AUTH_WEBAUTHN_RP_ID,
    AUTH_WEBAUTHN_RP_ORIGINS,
  })

  test.each([
    ['10.0.0.1', 'https://app.example', 'AUTH_WEBAUTHN_RP_ID must be a domain name'],
    ['1.2', 'https://app.example', 'AUTH_WEBAUTHN_RP_ID must be a domain name'],
    ['example', 'https://app.example', 'AUTH_WEBAUTHN_RP_ID is a top-level domain'],
    ['app.example', 'http://app.example', 'AUTH_WEBAUTHN_RP_ORIGINS must be https'],
    ['app.example', 'https://[::1]:8443', 'AUTH_WEBAUTHN_RP_ORIGINS must have names'],
    ['app.example', 'https://app.example,http://localhost:3000', 'AUTH_WEBAUTHN_RP_ORIGINS has localhost'],
  ])('of %s at %s is refused', (rpId, origins, problem) => {
    expect(problemsOf(party(rpId, origins))).toEqual([expect.stringContaining(problem)])
  })

  test.each([
    ['localhost', 'http://localhost:3000'],
    ['intranet', 'https://intranet'],
    ['app.example', 'https://login.app.example:8443,https://app.example'],
  ])('of %s at %s is accepted', (rpId, origins) => {
    expect(readConfig({ ...REQUIRED, ...party(rpId, origins) }).warnings).toEqual([])
  })

  test('of other domains, too, is warned about: the domain itself must permit them', () => {
    const origins = 'https://app.example,https://wapp.example,https://other.example'
    expect(readConfig({ ...REQUIRED, ...party('app.example', origins) }).warnings).toEqual([
      expect.stringMatching(/^AUTH_WEBAUTHN_RP_ORIGINS has 2 page\(s\) outside AUTH_WEBAUTHN_RP_ID: .*well-known/),
    ])
  })
})

test('passkeys: the start needs the whole relying party, whose origins are pages or Android apps', () => {
  const on = { AUTH_PASSKEY_ENABLED: 'true' }
  expect(problemsOf(on)).toEqual([
    'AUTH_PASSKEY_ENABLED requires AUTH_WEBAUTHN_RP_ID, AUTH_WEBAUTHN_RP_DISPLAY_NAME, AUTH_WEBAUTHN_RP_ORIGINS',
  ])
  const party = { AUTH_WEBAUTHN_RP_ID: 'app.example', AUTH_WEBAUTHN_RP_ORIGINS: 'https://app.example' }
  expect(problemsOf({ ...on, ...party })).toEqual(['AUTH_PASSKEY_ENABLED requires AUTH_WEBAUTHN_RP_DISPLAY_NAME'])
  const complete = { ...on, ...party, AUTH_WEBAUTHN_RP_DISPLAY_NAME: 'App' }
  const app = `android:apk-key-hash:${'a'.repeat(43)}`
  const read = (more: object) => readConfig({ ...REQUIRED, ...complete, ...more })
  expect(read({ AUTH_WEBAUTHN_RP_ORIGINS: `https://app.example,${app}` }).warnings).toEqual([])
  for (const origins of ['https://app.example/', 'android:apk-key-hash:short', `${app}x`]) {
    expect(problemsOf({ ...complete, AUTH_WEBAUTHN_RP_ORIGINS: origins })).toEqual([
      'AUTH_WEBAUTHN_RP_ORIGINS must be origins such as https://app.example, without a path',
    ])
  }
  expect(read({ AUTH_PASSKEY_ENABLED: 'false', AUTH_PASSKEY_SIGNUP_ENABLED: 'true' }).warnings).toEqual([
    'AUTH_PASSKEY_SIGNUP_ENABLED has no effect while AUTH_PASSKEY_ENABLED is false',
  ])
  const name = 'AUTH_WEBAUTHN_CHALLENGE_EXPIRY_DURATION'
  expect(problemsOf({ ...complete, [name]: '61m' })).toEqual([expect.stringMatching(`^${name} must be at most 60m`)])
})

test('unknown and inherited names are warned about, with the nearest known name', () => {
  const { warnings } = readConfig({
    ...REQUIRED,
    AUTH_SITE_URLS: 'x',
    AUTH_QUUX_ZYZZYVA: 'x',
    AUTH_OPERATOR_TOKEN: 'x',
  })
  expect(warnings).toEqual([
    'AUTH_SITE_URLS is not a known variable; the nearest known one is AUTH_SITE_URL',
    'AUTH_QUUX_ZYZZYVA is not a known variable',
    'AUTH_OPERATOR_TOKEN is inherited and has no effect',
  ])
})

test.for([
  { when: 'a variable is missing', missing: 'AUTH_JWT_SECRET', misspelt: 'AUTH_JWT_SECRT' },
  { when: 'settings contradict each other', missing: 'AUTH_SMTP_HOST', misspelt: 'AUTH_SMTP_HSOT' },
])('a misspelt name is a problem of its own when $when', ({ missing, misspelt }) => {
  expect(problemsOf({ [missing]: '', [misspelt]: 'x' })).toEqual([
    expect.stringMatching(`^${missing} `),
    `${misspelt} is not a known variable; the nearest known one is ${missing}`,
  ])
})

describe('providers of the operator', () => {
  const corp = {
    AUTH_EXTERNAL_OIDC_CORP_SSO_ENABLED: 'true',
    AUTH_EXTERNAL_OIDC_CORP_SSO_CLIENT_ID: 'x',
    AUTH_EXTERNAL_OIDC_CORP_SSO_SECRET: 'x',
    AUTH_EXTERNAL_OIDC_CORP_SSO_REDIRECT_URI: 'https://auth.example/callback',
  }
  const issuer = { AUTH_EXTERNAL_OIDC_CORP_SSO_ISSUER: 'https://login.example' }

  test('are any number, named in their variables', () => {
    const more = { EXTERNAL_OIDC_OTHER_ISSUER: 'https://other.example' }
    const { config, warnings } = readConfig({ ...REQUIRED, ...corp, ...issuer, ...more })
    expect(warnings).toEqual([])
    expect(config.ownProviders).toMatchObject({
      corp_sso: { enabled: true, issuer: 'https://login.example', scopes: ['openid', 'email', 'profile'] },
      other: { enabled: false, issuer: 'https://other.example' },
    })
  })

  test('need what every provider needs, and a name of their own', () => {
    expect(gapsOf(corp)).toEqual([expect.stringContaining('AUTH_EXTERNAL_OIDC_CORP_SSO_ISSUER is required')])
    for (const name of ['google', 'web3', 'passkey']) {
      expect(problemsOf({ [`AUTH_EXTERNAL_OIDC_${name.toUpperCase()}_ENABLED`]: 'false' })).toEqual([
        expect.stringContaining(`takes a name that is in use: ${name}`),
      ])
    }
    for (const claims of ['x', '[]', '{"name":1}']) {
      expect(problemsOf({ AUTH_EXTERNAL_OIDC_CORP_CLAIMS: claims })).toEqual([
        expect.stringMatching(/^AUTH_EXTERNAL_OIDC_CORP_CLAIMS must /),
      ])
    }
  })
})

test('SMS gateways are kept in the order they are listed', () => {
  const settings = { ...TWILIO, ...HTTP, AUTH_SMS_TWILIO_ACCOUNT_SID: 'AC1', AUTH_SMS_PROVIDER: 'HTTP, twilio' }
  expect(readConfig({ ...REQUIRED, ...settings }).config.sms.providers).toEqual(['http', 'twilio'])
})

const ADDRESSES = { AUTH_MAILER_TEST_OTP: 'ada@example.com:123456,bob@example.com:654321' }

test('addresses with a fixed code are warned about, without address and code', () => {
  const warningsFor = (settings: Record<string, string>) => readConfig({ ...REQUIRED, ...settings }).warnings
  expect(warningsFor(ADDRESSES)).toEqual([
    'AUTH_MAILER_TEST_OTP lets 2 e-mail address(es) sign in with a fixed code, without an end (AUTH_MAILER_TEST_OTP_VALID_UNTIL)',
  ])
  expect(warningsFor({ ...ADDRESSES, AUTH_MAILER_TEST_OTP_VALID_UNTIL: '2030-01-31T00:00:00Z' })).toEqual([
    'AUTH_MAILER_TEST_OTP lets 2 e-mail address(es) sign in with a fixed code, until 2030-01-31T00:00:00.000Z',
  ])
})

test('production refuses addresses with a fixed code, unless they are permitted there', () => {
  const production = { ...ADDRESSES, NODE_ENV: 'production' }
  expect(problemsOf(production)).toEqual([expect.stringMatching(/^AUTH_MAILER_TEST_OTP .* NODE_ENV is production/)])
  for (const NODE_ENV of ['Production', ' PRODUCTION ']) expect(problemsOf({ ...ADDRESSES, NODE_ENV })).toHaveLength(1)
  expect(() => readConfig({ ...REQUIRED, ...ADDRESSES, NODE_ENV: '' }, { NODE_ENV: 'production' })).toThrow(ConfigError)
  expect(problemsOf({ ...production, AUTH_MAILER_TEST_OTP_VALID_UNTIL: '2020-01-31T00:00:00Z' })).toEqual([])
  expect(problemsOf(production).join()).not.toMatch(/123456|ada/)
  expect(problemsOf({ ...production, AUTH_MAILER_TEST_OTP_IN_PRODUCTION: 'true' })).toEqual([])
  expect(problemsOf({ NODE_ENV: 'production' })).toEqual([])
})

test('numbers with a fixed code are warned about, without number and code', () => {
  const warningsFor = (settings: Record<string, string>) => readConfig({ ...REQUIRED, ...settings }).warnings
  const numbers = { AUTH_SMS_TEST_OTP: '+49 151 00000001:123456,15550001111:654321' }
  expect(warningsFor(numbers)).toEqual([
    'AUTH_SMS_TEST_OTP lets 2 phone number(s) sign in with a fixed code, without an end (AUTH_SMS_TEST_OTP_VALID_UNTIL)',
  ])
  expect(warningsFor({ ...numbers, AUTH_SMS_TEST_OTP_VALID_UNTIL: '2030-01-31T00:00:00Z' })).toEqual([
    'AUTH_SMS_TEST_OTP lets 2 phone number(s) sign in with a fixed code, until 2030-01-31T00:00:00.000Z',
  ])
})

/** Settings of the production guide, without its addresses, and a provider. */
const SAFE = {
  AUTH_API_EXTERNAL_URL: 'https://auth.example.com',
  AUTH_MAILER_LINK_CONFIRMATION_PAGE: 'signup',
  AUTH_PASSWORD_MIN_LENGTH: '8',
  AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true',
  AUTH_SMTP_TLS: 'required',
  AUTH_RATE_LIMIT_HEADER: 'X-Real-IP',
  AUTH_EXTERNAL_GOOGLE_ENABLED: 'true',
  AUTH_EXTERNAL_GOOGLE_CLIENT_ID: 'our-client',
  AUTH_EXTERNAL_GOOGLE_SECRET: 'our-secret',
  AUTH_EXTERNAL_GOOGLE_REDIRECT_URI: 'https://auth.example.com/callback',
  AUTH_ENCRYPTION_KEY: 'another-secret-of-the-tests-with-32-bytes-or-more',
  AUTH_JWT_KEYS: JSON.stringify([{ kty: 'EC', kid: 'one', alg: 'ES256', key_ops: ['sign'] }]),
  ...Object.fromEntries(
    Object.keys(variables)
      .filter((name) => /^MAILER_NOTIFICATIONS_.*_ENABLED$/.test(name))
      .map((name) => [`AUTH_${name}`, 'true']),
  ),
}

test('settings to review are named for a public service, and no longer once they are set; a local one has none', () => {
  const review = (more: Record<string, string>) => settingsToReview(readConfig({ ...REQUIRED, ...more }).config)
  const open = { AUTH_API_EXTERNAL_URL: 'https://auth.example.com' }
  expect(review(open).map((line) => line.split(/[ :]/)[0])).toEqual([
    'AUTH_MAILER_LINK_CONFIRMATION_PAGE',
    'AUTH_MAILER_NOTIFICATIONS_*_ENABLED',
    'AUTH_PASSWORD_MIN_LENGTH',
    'AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD',
    'AUTH_SMTP_TLS',
    'AUTH_SECURITY_CAPTCHA_ENABLED',
    'AUTH_JWT_KEYS',
    'AUTH_ENCRYPTION_KEYS',
  ])
  expect(review({ ...open, ...SAFE })).toEqual([])
  const introduced = { AUTH_ENCRYPTION_KEY: '', AUTH_ENCRYPTION_KEYS: `ENCRYPTION_KEY,a:${'0'.repeat(64)}` }
  expect(review({ ...open, ...SAFE, ...introduced })).toEqual([
    expect.stringContaining('begins with no key of its own: AUTH_JWT_SECRET encrypts'),
  ])
  expect(review({ AUTH_API_EXTERNAL_URL: 'http://127.0.0.1:8081' })).toEqual([])
  // Changes that no user can make need no notice.
  for (const [notice, on] of [
    ['AUTH_MAILER_NOTIFICATIONS_PASSKEY_ADDED_ENABLED', PASSKEYS],
    ['AUTH_MAILER_NOTIFICATIONS_MFA_TRUSTED_DEVICE_ADDED_ENABLED', { AUTH_MFA_TRUSTED_DEVICE_TTL: '30d' }],
    ['AUTH_MAILER_NOTIFICATIONS_ACCOUNT_DELETED_ENABLED', { AUTH_SELF_DELETION_ENABLED: 'true' }],
  ] as const) {
    expect(review({ ...open, ...SAFE, [notice]: 'false' })).toEqual([])
    expect(review({ ...open, ...SAFE, [notice]: 'false', ...on })).toHaveLength(1)
  }
})

test.for<[string, string, string?]>([
  ['AUTH_MAILER_LINK_CONFIRMATION_PAGE', 'false'],
  ['AUTH_MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED', 'false'],
  ['AUTH_PASSWORD_MIN_LENGTH', '7'],
  ['AUTH_PASSWORD_REFUSE_GUESSABLE', 'false'],
  ['AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD', 'false'],
  ['AUTH_SMTP_TLS', 'auto'],
  ['AUTH_MAILER_AUTOCONFIRM', 'true'],
  ['AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED', 'false'],
  ['AUTH_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS', 'true'],
  ['AUTH_SECURITY_REFRESH_TOKEN_ROTATION_ENABLED', 'false'],
  ['AUTH_EXTERNAL_GOOGLE_SKIP_NONCE_CHECK', 'true'],
  ['AUTH_EGRESS_ALLOW_CIDRS', '10.0.0.0/8,::/0'],
  ['AUTH_EGRESS_ALLOW_CIDRS', '128.0.0.0/1'],
  // The header itself is named beside the settings to review.
  ['AUTH_RATE_LIMIT_HEADER', '', 'AUTH_SECURITY_CAPTCHA_ENABLED'],
  ['AUTH_API_EXTERNAL_URL', 'http://auth.example.com'],
  ['AUTH_DATABASE_URL', 'postgres://auth@db.internal/auth'],
  ['AUTH_DATABASE_URL', 'postgres://auth@db.internal/auth?sslmode=no-verify'],
  ['AUTH_DATABASE_URL', 'postgres://auth@db.internal/auth?uselibpqcompat=true&sslmode=require'],
  ['AUTH_JWT_SECRET', 'x'.repeat(31)],
  ['AUTH_JWT_KEYS', ''],
  ['AUTH_ENCRYPTION_KEY', ''],
  ['AUTH_ENCRYPTION_KEY', 'x'.repeat(31)],
])(
  'of settings that are safe otherwise, %s=%s is to review, by its name and never by its value',
  ([name, value, named = name]) => {
    const lines = settingsToReview(readConfig({ ...REQUIRED, ...SAFE, [name]: value }).config)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain(named.replace(/_PASSWORD_CHANGED_/, '_*_'))
    if (value.length > 7) expect(lines[0]).not.toContain(value)
  },
)

test.each([
  'postgres://auth@localhost/auth',
  'postgres://auth@[::1]/auth',
  'postgres:///auth?host=/run/postgresql',
  'postgres://auth@%2Frun%2Fpostgresql/auth',
  'postgres://auth@db.internal/auth?sslmode=require',
])('%s is reached as it should be', (url) => {
  expect(settingsToReview(readConfig({ ...REQUIRED, ...SAFE, AUTH_DATABASE_URL: url }).config)).toEqual([])
})

test.each([
  ['24h', {}, undefined],
  ['23h', {}, '24h'],
  ['24h', { AUTH_JWT_EXP: '25h' }, 'AUTH_JWT_EXP'],
  ['240h', { AUTH_SESSIONS_INACTIVITY_TIMEOUT: '241h' }, 'AUTH_SESSIONS_INACTIVITY_TIMEOUT'],
])('idle sessions are kept for %s with %j: at least %s', (keep, settings, shortest) => {
  const problems = problemsOf({ AUTH_SESSIONS_KEEP_IDLE: keep, ...settings })
  expect(problems).toEqual(shortest ? [`AUTH_SESSIONS_KEEP_IDLE must be at least ${shortest}`] : [])
})

test('an alias is no unknown name', () => {
  const { config, warnings } = readConfig({ ...REQUIRED, AUTH_AUDIT_LOG_KEEP: '48h' })
  expect([config.auditKeepSeconds, warnings.filter((line) => line.includes('AUDIT'))]).toEqual([172_800, []])
})
