import type { ApiError } from '@services/common/errors'
import { type OAuthErrorCode, oauthErrorCatalogue } from '../../oauth-errors.ts'

/** Whether the failure has a name of the OAuth server, whose form no version of the API changes. */
export const isOAuthError = ({ code }: Pick<ApiError, 'code'>): boolean => Object.hasOwn(oauthErrorCatalogue, code)

/** Failures of the usual API that have another name than their status gives them. */
const NAMES: Record<string, OAuthErrorCode> = {
  ...{ user_banned: 'access_denied', hook_rejected: 'access_denied' },
  refresh_token_not_found: 'invalid_grant',
  refresh_token_already_used: 'invalid_grant',
  session_expired: 'invalid_grant',
  session_not_found: 'invalid_grant',
}

/** Name of RFC 6749 for a failure of any kind. */
export function nameOf(error: ApiError): OAuthErrorCode {
  if (isOAuthError(error)) return error.code as OAuthErrorCode
  const { code, status } = error
  if (status === 429 || status === 503 || status === 504) return 'temporarily_unavailable'
  return NAMES[code] ?? (status >= 500 ? 'server_error' : 'invalid_request')
}

/** Text without the characters that RFC 6749 does not permit. */
export const describe = ({ message }: Pick<ApiError, 'message'>): string =>
  message.replaceAll('"', "'").replace(/[^\x20-\x7e]|\\/g, '?')

/** Body of RFC 6749, section 5.2. */
export const oauthBody = (error: ApiError) => ({
  error: nameOf(error),
  error_description: describe(error),
  ...error.details,
})
