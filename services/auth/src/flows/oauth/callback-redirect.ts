import type { ApiError } from '@services/common/errors'
import { fitsAddress } from '../../adapters/providers/far-side.ts'
import type { SignedIn } from '../../adapters/providers/sign-in-client.ts'
import { ERROR_NAMES, sessionParameters } from '../../core/redirects/redirect-parameters.ts'
import { withFragment, withQuery } from '../../core/redirects/redirect-url.ts'
import type { SessionBody } from '../../core/sessions/session-shape.ts'

/** Codes that refuse the account itself: access_denied, whatever their status (contract/auth-external.md 2.3). */
const DENIED = ['signup_disabled', 'user_banned', 'provider_email_needs_verification']

export const errorParameters = ({ code, status, message }: ApiError): Record<string, string> => ({
  error: DENIED.includes(code) ? 'access_denied' : (ERROR_NAMES[status] ?? 'server_error'),
  error_code: code,
  error_description: message,
})

/** Adds the error to the query, for servers, and to the fragment, for browsers. */
export const failedRedirect = (target: string, parameters: Record<string, string>): string =>
  withFragment(withQuery(target, parameters), parameters)

export const signedInRedirect = (
  target: string,
  session: SessionBody,
  { provider, tokens }: { provider: string; tokens: { provider_token?: string; provider_refresh_token?: string } },
): string => withFragment(target, { ...sessionParameters(session), provider, ...tokens })

/** The provider's tokens that fit an address. An exchanged code returns longer ones too. */
export const tokensForAddress = ({ accessToken, refreshToken }: Pick<SignedIn, 'accessToken' | 'refreshToken'>) => ({
  ...(fitsAddress(accessToken) && { provider_token: accessToken }),
  ...(refreshToken && fitsAddress(refreshToken) && { provider_refresh_token: refreshToken }),
})
