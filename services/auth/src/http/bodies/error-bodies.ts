import type { IncomingHttpHeaders } from 'node:http'
import type { ApiError } from '@services/common/errors'
import type { CommonFailure, ErrorAnswers } from '@services/common/http/error-answers'
import { apiError, type ErrorCode } from '../../errors.ts'
import { isOAuthError, oauthBody } from './oauth-error-body.ts'

/** Date of the error form (contract/auth-core.md 2.1): before 2024-01-01 `code` is the status, then the error code. */
const API_VERSION_HEADER = 'x-supabase-api-version'
const NEW_FORM_SINCE = '2024-01-01'

const CODES: Record<CommonFailure, ErrorCode> = {
  invalid_json: 'bad_json',
  invalid_request: 'validation_failed',
  invalid_field: 'bad_json',
  body_too_large: 'request_entity_too_large',
  headers_too_large: 'request_entity_too_large',
  unsupported_media_type: 'bad_json',
  not_found: 'not_found',
  method_not_allowed: 'method_not_allowed',
  too_slow: 'request_timeout',
  timeout: 'request_timeout',
  unavailable: 'service_unavailable',
  unexpected: 'unexpected_failure',
}

/** Failures whose status differs from the one of their code. */
const SPECIAL: Partial<Record<CommonFailure, { status: number; message: string }>> = {
  headers_too_large: { status: 431, message: 'The headers of the request are too large' },
  too_slow: { status: 408, message: 'The request did not arrive in time' },
}

export const errorAnswers: ErrorAnswers = {
  common: (failure, detail, cause) =>
    apiError(CODES[failure], {
      cause,
      ...SPECIAL[failure],
      ...(detail ? { message: `Could not read the request: ${detail}` } : {}),
    }),
  form(error, requestId, sent) {
    const headers = { 'x-sb-error-code': error.code, ...challengeOf(error, sent) }
    // Beside the usual members, as applications may ask here too.
    const named = isOAuthError(error) ? oauthBody(error) : {}
    if (!wantsNewForm(sent)) return { headers, body: { ...oldForm(error, requestId), ...named } }
    return { headers: { ...headers, [API_VERSION_HEADER]: NEW_FORM_SINCE }, body: { ...newForm(error), ...named } }
  },
}

/** Challenges as RFC 9110 15.5.2 and RFC 6750 3 have them. */
function challengeOf(
  { code, status, details }: ApiError,
  { authorization = '' }: IncomingHttpHeaders,
): Record<string, string> {
  const scheme = /^dpop /i.test(authorization) ? 'DPoP' : 'Bearer'
  if (code === 'insufficient_scope') {
    const scope = details?.scope ? `, scope="${details.scope}"` : ''
    return { 'www-authenticate': `${scheme} error="insufficient_scope"${scope}` }
  }
  if (status !== 401) return {}
  return { 'www-authenticate': code === 'no_authorization' ? scheme : `${scheme} error="invalid_token"` }
}

const newForm = (error: ApiError) => ({ code: error.code, message: error.message, ...error.details })

const oldForm = (error: ApiError, requestId: string) => ({
  code: error.status,
  error_code: error.code,
  msg: error.message,
  ...(error.status >= 500 ? { error_id: requestId } : {}),
  ...error.details,
})

function wantsNewForm(sent: IncomingHttpHeaders): boolean {
  const version = String(sent[API_VERSION_HEADER] ?? '')
  return /^\d{4}-\d{2}-\d{2}$/.test(version) && !Number.isNaN(Date.parse(version)) && version >= NEW_FORM_SINCE
}
