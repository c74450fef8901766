import { errorFactory } from '@services/common/errors'

/**
 * Failures of the OAuth server's own endpoints, in the form of RFC 6749, section 5.2. Sources: RFC 6749 4.1.2.1 and
 * 5.2, RFC 6750 3.1, RFC 7591 3.2.2, RFC 8628 3.5, RFC 8707 2, RFC 9449 5, OpenID Connect Core 3.1.2.6.
 */
export const oauthErrorCatalogue = {
  invalid_request: { status: 400, message: 'A parameter is missing or not valid' },
  invalid_client: { status: 401, message: 'Client authentication failed' },
  invalid_grant: { status: 400, message: 'The code or token is unknown, expired or used' },
  unauthorized_client: { status: 400, message: 'The client may not use this grant type' },
  unsupported_grant_type: { status: 400, message: 'Unsupported grant type' },
  unsupported_response_type: { status: 400, message: 'only response_type=code is supported' },
  request_not_supported: { status: 400, message: 'Request objects are not supported' },
  invalid_scope: { status: 400, message: 'A scope is unknown or not permitted' },
  invalid_target: { status: 400, message: 'A resource is unknown or not permitted' },
  access_denied: { status: 400, message: 'The request was denied' },
  login_required: { status: 400, message: 'The user must sign in' },
  consent_required: { status: 400, message: 'The user must agree' },
  interaction_required: { status: 400, message: 'The user must be asked' },
  authorization_pending: { status: 400, message: 'The user has not answered yet' },
  slow_down: { status: 400, message: 'Ask less often' },
  expired_token: { status: 400, message: 'The device code has expired' },
  invalid_dpop_proof: { status: 400, message: 'The DPoP proof is missing or not valid' },
  invalid_redirect_uri: { status: 400, message: 'A redirect address is not valid' },
  invalid_client_metadata: { status: 400, message: 'A member of the client is not valid' },
  server_error: { status: 500, message: 'Something went wrong on our side' },
  temporarily_unavailable: { status: 503, message: 'Try again shortly' },
} as const

export type OAuthErrorCode = keyof typeof oauthErrorCatalogue

export const oauthError = errorFactory(oauthErrorCatalogue)
