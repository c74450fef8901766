// The log line of a sign-in at a provider that ends without a session. It gives the operator provider, code, reason and
// the setting that would change it, where there is one. The application gets only the public text. Tests: here.
import type { ApiError } from '@services/common/errors'
import { providerSettingName } from '../../config/external-providers.ts'
import { LimitReached } from '../../core/limits/limiter.ts'

interface RefusalLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

interface Clue {
  code: string
  /** Part of the text or its cause, where the code alone has several reasons. */
  text?: RegExp
  /** Setting of the service, or the last part of the provider's own. */
  setting: `AUTH_${string}` | 'CLIENT_ID' | 'SECRET' | 'REDIRECT_URI' | 'ENABLED' | 'EMAIL_OPTIONAL' | 'LINKING' | 'URL'
}

/** The first that fits counts. */
const CLUES: readonly Clue[] = [
  { code: 'provider_email_needs_verification', setting: 'AUTH_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS' },
  { code: 'signup_disabled', setting: 'AUTH_DISABLE_SIGNUP' },
  { code: 'email_exists', setting: 'LINKING' },
  { code: 'oauth_provider_not_supported', setting: 'ENABLED' },
  { code: 'bad_oauth_state', text: /AUTH_ENCRYPTION_KEY/, setting: 'AUTH_ENCRYPTION_KEYS' },
  { code: 'bad_oauth_state', text: /cookie/, setting: 'REDIRECT_URI' },
  { code: 'bad_oauth_state', text: /expired$/, setting: 'AUTH_EXTERNAL_FLOW_STATE_EXPIRY_DURATION' },
  { code: 'provider_unavailable', setting: 'URL' },
  { code: 'unexpected_failure', text: /^Error getting user email/, setting: 'EMAIL_OPTIONAL' },
  { code: 'unexpected_failure', text: /redirect_uri/, setting: 'REDIRECT_URI' },
  { code: 'unexpected_failure', text: /invalid_client|unauthorized_client/, setting: 'SECRET' },
]

/** Codes of the provider itself (RFC 6749 4.1.2.1). */
const PROVIDER_CLUES: readonly Clue[] = [
  { code: 'unauthorized_client', setting: 'CLIENT_ID' },
  { code: 'redirect_uri_mismatch', setting: 'REDIRECT_URI' },
]

/** Logs a sign-in that this service ended. A provider is unknown until the attempt is found. */
export function logRefusal(log: RefusalLog, provider: string | undefined, error: ApiError): void {
  const { code, status, message, cause } = error
  // The cause says more, and quotes no code, token or address; a defect has a line with its stack.
  const reason = cause instanceof Error && status !== 500 ? cause.message : message
  const text = `${message} ${reason}`
  const clue = CLUES.find((known) => known.code === code && (known.text?.test(text) ?? true))
  const setting = error instanceof LimitReached ? error.setting : clue && nameOf(clue.setting, provider)
  write(log, status >= 500 ? 'warn' : 'info', { provider, code, reason, setting })
}

/** A code of RFC 6749; a provider's other words may quote an address, and anyone can write them into the URL. */
const CODE = /^\w{1,60}$/

/** Logs a sign-in that the provider ended. */
export const logProviderRefusal = (log: RefusalLog, provider: string, error: string): void => {
  const code = CODE.test(error) ? error : 'unknown'
  const clue = PROVIDER_CLUES.find((known) => known.code === code)
  const setting = clue && nameOf(clue.setting, provider)
  write(log, 'info', { provider, code, reason: 'the provider answered with an error', setting })
}

function write(
  log: RefusalLog,
  level: 'info' | 'warn',
  {
    setting,
    ...ended
  }: { provider: string | undefined; code: string; reason: string; setting: string | null | undefined },
): void {
  log[level]({ ...ended, ...(setting && { setting }) }, 'sign-in at a provider ended without a session')
}

/** Fields of a provider of the admin API, in place of its settings. */
const FIELDS: Record<string, string> = {
  CLIENT_ID: 'client_id',
  SECRET: 'client_secret',
  REDIRECT_URI: 'AUTH_CUSTOM_OAUTH_EXTERNAL_URL',
  ENABLED: 'enabled',
  EMAIL_OPTIONAL: 'email_optional',
  LINKING: 'linking',
  URL: 'issuer',
}

function nameOf(setting: Clue['setting'], provider: string | undefined): string | undefined {
  if (setting.startsWith('AUTH_')) return setting
  if (provider?.startsWith('custom:')) return FIELDS[setting]
  return provider && providerSettingName(provider, setting)
}
