import type { SessionBody } from '../sessions/answer-session.ts'

/** `error` of a redirect, by the status of our refusal (RFC 6749 4.1.2.1; contract/auth-core.md 2.2). Others have none. */
export const ERROR_NAMES: Record<number, string> = {
  400: 'invalid_request',
  401: 'unauthorized_client',
  403: 'access_denied',
  500: 'server_error',
  503: 'temporarily_unavailable',
}

export const sessionParameters = (session: SessionBody): Record<string, string> => ({
  access_token: session.access_token,
  expires_at: String(session.expires_at),
  expires_in: String(session.expires_in),
  refresh_token: session.refresh_token,
  token_type: session.token_type,
})
