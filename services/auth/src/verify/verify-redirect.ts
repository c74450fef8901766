import type { ApiError } from '@services/common/errors'
import type { SessionBody } from '../sessions/session-shape.ts'

/** `error` of an error redirect by status; other statuses have none (contract/auth-core.md 2.2). */
const ERROR_NAMES: Record<number, string> = {
  400: 'invalid_request',
  401: 'unauthorized_client',
  403: 'access_denied',
  500: 'server_error',
  503: 'temporarily_unavailable',
}

/** The target with the session in its fragment, which browsers do not send to the server. Keys sorted, `sb` marks us. */
export function sessionRedirect(target: string, session: SessionBody): string {
  const parameters = {
    access_token: session.access_token,
    expires_at: String(session.expires_at),
    expires_in: String(session.expires_in),
    refresh_token: session.refresh_token,
    sb: '',
    token_type: session.token_type,
    type: session.type ?? '',
  }
  return `${target}#${new URLSearchParams(parameters)}`
}

/** The target with the error in its fragment, which replaces one it may have. */
export function errorRedirect(target: string, error: ApiError): string {
  const name = ERROR_NAMES[error.status]
  const parameters = new URLSearchParams({
    ...(name ? { error: name } : {}),
    error_code: error.code,
    error_description: error.message,
    sb: '',
  })
  return `${target.split('#', 1)[0]}#${parameters}`
}
