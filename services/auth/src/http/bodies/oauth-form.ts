import type { ApiError } from '@services/common/errors'
import type { ErrorAnswers } from '@services/common/http/error-answers'
import { answerFailures } from '@services/common/http/error-handler'
import type { FastifyInstance } from 'fastify'
import { errorAnswers } from './error-bodies.ts'
import { oauthBody } from './oauth-error-body.ts'

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
          body: oauthBody(error),
        },
}

/** A client that tried Basic learns that it may (RFC 6749, section 5.2). */
function challenge({ status }: ApiError, authorization: string | undefined): Record<string, string> {
  if (status !== 401) return {}
  const [scheme = ''] = (authorization ?? '').split(' ')
  return { 'www-authenticate': /^(bearer|dpop)$/i.test(scheme) ? scheme : 'Basic realm="oauth"' }
}
