import type { ApiError } from '@services/common/errors'
import { withFragment, withQuery } from '../redirects/redirect-url.ts'
import type { SessionBody } from '../sessions/session-shape.ts'

/** Our refusals, by what RFC 6749 4.1.2.1 has for them (contract/auth-external.md 2.3). */
const ERROR_NAMES: Record<number, string> = {
  400: 'invalid_request',
  401: 'unauthorized_client',
  403: 'access_denied',
  503: 'temporarily_unavailable',
}
const DENIED = ['signup_disabled', 'user_banned', 'provider_email_needs_verification']

export const errorParameters = ({ code, status, message }: ApiError): Record<string, string> => ({
  error: DENIED.includes(code) ? 'access_denied' : (ERROR_NAMES[status] ?? 'server_error'),
  error_code: code,
  error_description: message,
})

/** The target with an error in its query, where servers read it, and in its fragment, where browsers do. */
export const failedRedirect = (target: string, parameters: Record<string, string>): string =>
  withFragment(withQuery(target, parameters), parameters)

/** The target with the session in its fragment. */
export const signedInRedirect = (
  target: string,
  session: SessionBody,
  { provider, accessToken, refreshToken }: { provider: string; accessToken: string; refreshToken: string | undefined },
): string =>
  withFragment(target, {
    access_token: session.access_token,
    expires_at: String(session.expires_at),
    expires_in: String(session.expires_in),
    provider,
    provider_token: accessToken,
    ...(refreshToken && { provider_refresh_token: refreshToken }),
    refresh_token: session.refresh_token,
    token_type: session.token_type,
  })
