import type { ApiError } from '@services/common/errors'
import type { SignedIn } from '../../adapters/providers/sign-in-client.ts'
import { fitsAddress } from '../../adapters/providers/upstream.ts'
import { ERROR_NAMES, sessionParameters } from '../../core/redirects/redirect-parameters.ts'
import { withFragment, withQuery } from '../../core/redirects/redirect-url.ts'
import type { SessionBody } from '../../core/sessions/answer-session.ts'

/** Refused for what the account is, whatever their status (contract/auth-external.md 2.3). */
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
  { provider, tokens }: { provider: string; tokens: { provider_token?: string; provider_refresh_token?: string } },
): string => withFragment(target, { ...sessionParameters(session), provider, ...tokens })

/** The provider's tokens that an address can hold. An exchanged code brings the others too. */
export const tokensForAddress = ({ accessToken, refreshToken }: Pick<SignedIn, 'accessToken' | 'refreshToken'>) => ({
  ...(fitsAddress(accessToken) && { provider_token: accessToken }),
  ...(refreshToken && fitsAddress(refreshToken) && { provider_refresh_token: refreshToken }),
})
