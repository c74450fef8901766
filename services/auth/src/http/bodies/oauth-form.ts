import type { ApiError } from '@services/common/errors'
import type { ErrorAnswers } from '@services/common/http/error-answers'
import { answerFailures } from '@services/common/http/error-handler'
import type { FastifyInstance } from 'fastify'
import { type OAuthErrorCode, oauthErrorCatalogue } from '../../oauth-errors.ts'
import { errorAnswers } from './error-bodies.ts'

/** Answers failures of the scope in the form of RFC 6749, section 5.2, whatever version of the API is asked for. */
export const answerInOAuthForm = (app: FastifyInstance): void => answerFailures(app, oauthAnswers)

const oauthAnswers: ErrorAnswers = {
  common: errorAnswers.common,
  form: (error, requestId, sent) =>
    // A disabled server is none yet.
    error.code === 'feature_disabled'
      ? errorAnswers.form(error, requestId, sent)
      : {
          headers: challenge(error, sent.authorization),
          body: { error: nameOf(error), error_description: describe(error), ...error.details },
        },
}

const isOAuthCode = (code: string): code is OAuthErrorCode => code in oauthErrorCatalogue

/** Name of RFC 6749 for a failure of any kind. */
export function nameOf({ code, status }: ApiError): OAuthErrorCode {
  if (isOAuthCode(code)) return code
  if (code === 'user_banned') return 'access_denied'
  if (status === 429 || status === 503 || status === 504) return 'temporarily_unavailable'
  return status >= 500 ? 'server_error' : 'invalid_request'
}

/** Text without the characters that RFC 6749 does not permit. */
export const describe = ({ message }: Pick<ApiError, 'message'>): string =>
  message.replaceAll('"', "'").replace(/[^\x20-\x7e]|\\/g, '?')

/** A client that tried Basic learns that it may (RFC 6749, section 5.2). */
function challenge({ status }: ApiError, authorization: string | undefined): Record<string, string> {
  if (status !== 401) return {}
  const [scheme = ''] = (authorization ?? '').split(' ')
  return { 'www-authenticate': /^(bearer|dpop)$/i.test(scheme) ? scheme : 'Basic realm="oauth"' }
}
