import type { NOTIFICATION_KINDS } from '../adapters/mail/kinds.ts'
import { canSendMail } from '../adapters/mail/smtp.ts'
import type { Config } from '../config.ts'
import { settingNamesOf } from './external-providers.ts'

/** RFC 7518 3.2; shorter secrets are accepted, because they exist in the field. */
const SHORTEST_SECRET_BYTES = 32

/** Prefix of the largest private network of IPv4, 10.0.0.0/8. */
const SHORTEST_PREFIX = 8

const isLocal = (host: string) => /^(localhost|127\.[\d.]+|\[::1\])$/.test(host)

/**
 * Whether a remote database's certificate is unchecked; the driver checks it in each of these modes, unless it follows
 * libpq.
 */
function isReachedWithoutTls(databaseUrl: string): boolean {
  const { hostname, searchParams } = new URL(databaseUrl)
  const isSocket = hostname === '' || hostname.startsWith('%2F') || searchParams.get('host')?.startsWith('/')
  if (isSocket || isLocal(hostname)) return false
  const followsLibpq = searchParams.get('uselibpqcompat') === 'true'
  const checked = followsLibpq ? ['verify-full'] : ['prefer', 'require', 'verify-ca', 'verify-full']
  return !checked.includes(searchParams.get('sslmode') ?? '')
}

/** Names of settings of enabled providers that accept id_tokens without a nonce. */
const withoutNonce = (config: Config): string[] =>
  settingNamesOf(config, 'SKIP_NONCE_CHECK', ({ enabled, skipNonceCheck }) => enabled && skipNonceCheck)

/** Notices of changes that users can make: none of features that are disabled. */
export const possibleNotices = ({ mail, mfa, passkeys, signup }: Config): (keyof typeof NOTIFICATION_KINDS)[] =>
  (Object.keys(mail.notifications) as (keyof typeof NOTIFICATION_KINDS)[]).filter(
    (kind) =>
      (passkeys.enabled || !kind.startsWith('passkey_')) &&
      (signup.selfDeletion || !kind.startsWith('account_deleted_')) &&
      (mfa.trustedDevices.ttlSeconds || !kind.startsWith('mfa_trusted_device_')),
  )

/** Lists settings to review before users come; none for a service that only its own machine reaches. */
export function settingsToReview(config: Config): string[] {
  if (isLocal(new URL(config.server.externalUrl).hostname)) return []
  return Object.entries(openSettings(config)).flatMap(([advice, isOpen]) => (isOpen ? [advice] : []))
}

/**
 * Advises on settings whose safe value cannot be the default, or that an operator may have loosened: whether each
 * applies.
 */
function openSettings(config: Config): Record<string, boolean> {
  const { captcha, database, encryption, external, jwt, limits, mail, passwords, server, sessions } = config
  const { signup, sms, smtp } = config
  const sendsMail = canSendMail(config)
  const encryptsBy = encryption.keys[0].secret
  const acceptedWithoutNonce = withoutNonce(config)
  return {
    'AUTH_MAILER_LINK_CONFIRMATION_PAGE is disabled: a scanner that opens the links of a mail confirms them':
      sendsMail && mail.confirmationPageTypes.length === 0,
    'AUTH_MAILER_NOTIFICATIONS_*_ENABLED: users get no mail about some changes of their own accounts':
      sendsMail && possibleNotices(config).some((kind) => !mail.notifications[kind]),
    'AUTH_PASSWORD_MIN_LENGTH is below 8': passwords.minLength < 8,
    'AUTH_PASSWORD_REFUSE_GUESSABLE is disabled: the most used passwords are accepted': !passwords.refusesGuessable,
    'AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD is disabled: a stolen session is enough for a new password':
      !passwords.requireCurrent && !passwords.requireReauthentication,
    'AUTH_SMTP_TLS is not required: mails with links may leave without encryption':
      smtp.host !== undefined && !mail.byHook && smtp.tls !== 'required',
    'AUTH_MAILER_AUTOCONFIRM or AUTH_SMS_AUTOCONFIRM is enabled: addresses count as confirmed without a proof':
      (signup.email && mail.autoconfirm) || (signup.phone && sms.autoconfirm),
    'AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED is disabled: a stolen session is enough for a new address':
      sendsMail && !mail.secureEmailChange,
    'AUTH_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS is enabled: users sign in at providers without a verified address':
      external.allowUnverifiedEmail,
    'AUTH_HOOK_SEND_EMAIL_SYNC or AUTH_HOOK_SEND_SMS_SYNC is enabled: answers reveal which addresses have accounts':
      mail.waitsForHook || sms.waitsForHook,
    'AUTH_CONSOLE_REQUIRE_MFA is disabled: the password of an administrator is enough for the console':
      config.console.enabled && !config.console.requiresMfa && config.mfa.requiredFor === 'nobody',
    'AUTH_OAUTH_SERVER_FULL_USER_TOKENS is enabled: an application that may read an address can change the account':
      config.oauthServer.enabled && config.oauthServer.fullUserTokens,
    'AUTH_SECURITY_REFRESH_TOKEN_ROTATION_ENABLED is disabled: a stolen refresh token that is used again ends nothing':
      !sessions.rotation,
    [`${acceptedWithoutNonce.join(', ')} is enabled: a stolen id_token signs in, more than once`]:
      acceptedWithoutNonce.length > 0,
    'AUTH_SECURITY_CAPTCHA_ENABLED is disabled and no trusted address header is set: a client signs up and guesses without a limit':
      !captcha.enabled && !limits.header && !server.trustSbForwardedFor,
    'AUTH_API_EXTERNAL_URL is not https: links and tokens travel without encryption':
      server.externalUrl.startsWith('http:'),
    'AUTH_DATABASE_URL or AUTH_DATABASE_DIRECT_URL has no sslmode=verify-full: the database is reached without TLS, or without checking its certificate':
      [database.url, database.directUrl].some(isReachedWithoutTls),
    'AUTH_DATABASE_FALLBACK_URLS has a URL without sslmode=verify-full':
      database.fallbackUrls.some(isReachedWithoutTls),
    [`AUTH_EGRESS_ALLOW_CIDRS has a network with a prefix below /${SHORTEST_PREFIX}: an admin token reaches private servers of all kinds`]:
      config.egress.allowCidrs.some((cidr) => Number(cidr.split('/')[1]) < SHORTEST_PREFIX),
    'AUTH_DATABASE_REPLICA_URL has no sslmode=verify-full':
      database.replica !== undefined && isReachedWithoutTls(database.replica.url),
    [`AUTH_JWT_SECRET has less than ${SHORTEST_SECRET_BYTES} bytes: a weak one is found by guessing, from any token it signs`]:
      Buffer.byteLength(jwt.secret) < SHORTEST_SECRET_BYTES,
    'AUTH_JWT_KEYS is unset: a server that verifies tokens needs AUTH_JWT_SECRET, which also signs admin tokens':
      !jwt.keys,
    'AUTH_ENCRYPTION_KEYS begins with no key of its own: AUTH_JWT_SECRET encrypts, and authenticator apps are lost when it is replaced':
      encryptsBy === jwt.secret,
    'AUTH_HOOK_*_UNSIGNED is enabled: a receiver takes the questions of any client for those of this service':
      Object.values(config.hooks).some(({ target, signers }) => target.kind === 'http' && signers.length === 0),
    'AUTH_HOOK_PASSWORD_VERIFICATION_ATTEMPT_ENABLED is true: a hook that rejects a wrong password reveals that the account exists':
      config.hooks['password-verification'] !== undefined,
    [`AUTH_ENCRYPTION_KEY has less than ${SHORTEST_SECRET_BYTES} bytes`]:
      encryptsBy !== jwt.secret && Buffer.byteLength(encryptsBy) < SHORTEST_SECRET_BYTES,
  }
}
