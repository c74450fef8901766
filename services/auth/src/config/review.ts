import type { Config } from '../config.ts'

/** RFC 7518 3.2; shorter secrets are accepted, because they exist in the field. */
const SHORTEST_SECRET_BYTES = 32

const sendsMail = ({ smtp }: Config) => Boolean(smtp.host)

const isLocal = (host: string) => /^(localhost|127\.[\d.]+|\[::1\])$/.test(host)

/** Whether a remote database's certificate is unchecked; the driver checks it in each of these modes. */
function isReachedWithoutTls(databaseUrl: string): boolean {
  const { hostname, searchParams } = new URL(databaseUrl)
  const isSocket = hostname === '' || hostname.startsWith('%2F') || searchParams.get('host')?.startsWith('/')
  if (isSocket || isLocal(hostname)) return false
  return !['prefer', 'require', 'verify-ca', 'verify-full'].includes(searchParams.get('sslmode') ?? '')
}

/** Names of settings of enabled providers that accept id_tokens without a nonce. */
const withoutNonce = ({ providers, ownProviders }: Config): string[] =>
  [...Object.entries(providers), ...Object.entries(ownProviders).map(([name, own]) => [`oidc_${name}`, own] as const)]
    .filter(([, { enabled, skipNonceCheck }]) => enabled && skipNonceCheck)
    .map(([name]) => `AUTH_EXTERNAL_${name.toUpperCase()}_SKIP_NONCE_CHECK`)

/** Settings whose safe value cannot be the default, and those that an operator may have loosened. */
const SWITCHES: readonly { isOpen: (config: Config) => boolean; advice: string | ((config: Config) => string) }[] = [
  {
    isOpen: (config) => sendsMail(config) && config.mail.confirmationPageTypes.length === 0,
    advice: 'AUTH_MAILER_LINK_CONFIRMATION_PAGE is disabled: a scanner that opens the links of a mail confirms them',
  },
  {
    isOpen: (config) => sendsMail(config) && Object.values(config.mail.notifications).includes(false),
    advice: 'AUTH_MAILER_NOTIFICATIONS_*_ENABLED: users get no mail about some changes of their own accounts',
  },
  {
    isOpen: ({ passwords }) => passwords.minLength < 8,
    advice: 'AUTH_PASSWORD_MIN_LENGTH is below 8',
  },
  {
    isOpen: ({ passwords }) => !passwords.refusesGuessable,
    advice: 'AUTH_PASSWORD_REFUSE_GUESSABLE is disabled: the most used passwords are accepted',
  },
  {
    isOpen: ({ passwords }) => !passwords.requireCurrent && !passwords.requireReauthentication,
    advice:
      'AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD is disabled: a stolen session is enough for a new password',
  },
  {
    isOpen: (config) => sendsMail(config) && config.smtp.tls !== 'required',
    advice: 'AUTH_SMTP_TLS is not required: mails with links may leave without encryption',
  },
  {
    isOpen: (config) =>
      (config.signup.email && config.mail.autoconfirm) || (config.signup.phone && config.sms.autoconfirm),
    advice: 'AUTH_MAILER_AUTOCONFIRM or AUTH_SMS_AUTOCONFIRM is enabled: addresses count as confirmed without a proof',
  },
  {
    isOpen: (config) => sendsMail(config) && !config.mail.secureEmailChange,
    advice: 'AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED is disabled: a stolen session is enough for a new address',
  },
  {
    isOpen: ({ external }) => external.allowUnverifiedEmail,
    advice:
      'AUTH_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS is enabled: users sign in at providers without a verified address',
  },
  {
    isOpen: ({ sessions }) => !sessions.rotation,
    advice:
      'AUTH_SECURITY_REFRESH_TOKEN_ROTATION_ENABLED is disabled: a stolen refresh token that is used again ends nothing',
  },
  {
    isOpen: (config) => withoutNonce(config).length > 0,
    advice: (config) => `${withoutNonce(config).join(', ')} is enabled: a stolen id_token signs in, more than once`,
  },
  {
    isOpen: ({ captcha, limits, server }) => !captcha.enabled && !limits.header && !server.trustSbForwardedFor,
    advice:
      'AUTH_SECURITY_CAPTCHA_ENABLED is disabled and no trusted address header is set: a client signs up and guesses without a limit',
  },
  {
    isOpen: ({ server }) => server.externalUrl.startsWith('http:'),
    advice: 'AUTH_API_EXTERNAL_URL is not https: links and tokens travel without encryption',
  },
  {
    isOpen: ({ database }) => isReachedWithoutTls(database.url),
    advice:
      'AUTH_DATABASE_URL has no sslmode=verify-full: the database is reached without TLS, or without checking its certificate',
  },
  {
    isOpen: ({ jwt }) => Buffer.byteLength(jwt.secret) < SHORTEST_SECRET_BYTES,
    advice: `AUTH_JWT_SECRET has less than ${SHORTEST_SECRET_BYTES} bytes: a weak one is found by guessing, from any token it signs`,
  },
  {
    isOpen: ({ jwt }) => !jwt.keys,
    advice:
      'AUTH_JWT_KEYS is unset: a server that verifies tokens needs AUTH_JWT_SECRET, which also signs admin tokens',
  },
  {
    isOpen: ({ jwt, encryptionSecret }) => encryptionSecret === jwt.secret,
    advice: 'AUTH_ENCRYPTION_KEY is unset: authenticator apps are lost when AUTH_JWT_SECRET is replaced',
  },
  {
    isOpen: ({ jwt, encryptionSecret }) =>
      encryptionSecret !== jwt.secret && Buffer.byteLength(encryptionSecret) < SHORTEST_SECRET_BYTES,
    advice: `AUTH_ENCRYPTION_KEY has less than ${SHORTEST_SECRET_BYTES} bytes`,
  },
]

/** Lists settings to review before users come; none for a service that only its own machine reaches. */
export function settingsToReview(config: Config): string[] {
  if (isLocal(new URL(config.server.externalUrl).hostname)) return []
  return SWITCHES.filter(({ isOpen }) => isOpen(config)).map(({ advice }) =>
    typeof advice === 'string' ? advice : advice(config),
  )
}
