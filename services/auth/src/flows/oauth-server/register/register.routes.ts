// Dynamic registration of clients (RFC 7591; docs/contract/auth-oauth-server.md). The rule: a client that registers
// itself gets nothing that an administrator grants. Rules of the members: core/oauth-server/client-metadata.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { ApiError } from '@services/common/errors'
import type { ErrorAnswers } from '@services/common/http/error-answers'
import { answerFailures } from '@services/common/http/error-handler'
import { Type } from 'typebox'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { errorAnswers } from '../../../http/bodies/error-bodies.ts'
import { ClientBody, ClientShape, givenMembers, toClientBody } from '../../../http/bodies/oauth-client.ts'
import { describe, nameOf } from '../../../http/bodies/oauth-error-body.ts'
import { ErrorShape } from '../../../http/bodies/shapes.ts'
import { requireOAuthServer } from '../../../http/caller/require-oauth-server.ts'
import { holdsToken, registerClient } from './register-client.ts'

const MAX_BODY_BYTES = 64 * 1024

/** Failures of a disabled feature, for people and not for clients. */
const PLAIN = ['feature_disabled', 'oauth_dynamic_client_registration_disabled']

const registrationAnswers: ErrorAnswers = {
  common: errorAnswers.common,
  form: (error, requestId, sent) =>
    PLAIN.includes(error.code)
      ? errorAnswers.form(error, requestId, sent)
      : {
          headers: error.status === 401 ? { 'www-authenticate': 'Bearer error="invalid_token"' } : {},
          body: { error: registrationErrorOf(error), error_description: describe(error) },
        },
}

/** Name of RFC 7591, section 3.2.2, for a refused member. */
function registrationErrorOf(error: ApiError): string {
  if (error.status === 401) return 'invalid_token'
  if (!['validation_failed', 'bad_json', 'request_entity_too_large'].includes(error.code)) return nameOf(error)
  return /^(invalid )?redirect_uri/.test(error.message) ? 'invalid_redirect_uri' : 'invalid_client_metadata'
}

const { client_type: _type, role: _role, introspects: _introspects, ...members } = ClientBody.properties
const RegistrationBody = Type.Object(members)

const Registered = Type.Object(
  {
    ...ClientShape.properties,
    client_id_issued_at: Type.Integer({ description: 'Seconds since 1970.' }),
    client_secret_expires_at: Type.Integer({ description: '0: the secret does not expire.' }),
  },
  { title: 'RegisteredClient' },
)

const Refused = Type.Object(
  { error: Type.String(), error_description: Type.String() },
  { title: 'RegistrationError', additionalProperties: true },
)
const refusals = {
  ...Object.fromEntries([400, 401, 413, 429, 500, 503, 504].map((status) => [status, Refused])),
  ...{ 403: ErrorShape, 404: ErrorShape },
}

export const registerRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { dynamicRegistration, registrationTokens } = deps.config.oauthServer
  answerFailures(app, registrationAnswers)
  requireOAuthServer(app, deps.config)
  app.addHook('onRequest', async (request) => {
    if (!dynamicRegistration) throw apiError('oauth_dynamic_client_registration_disabled')
    await deps.limits.byAddress(request, 'registration')
    if (registrationTokens.length === 0 || holdsToken(registrationTokens, request.headers.authorization)) return
    throw apiError('no_authorization', { message: 'Registration requires an initial access token' })
  })

  app.route({
    method: 'POST',
    url: '/oauth/clients/register',
    bodyLimit: MAX_BODY_BYTES,
    schema: {
      operationId: 'registerOAuthClient',
      tags: ['OAuth server'],
      summary: 'Registers a client without an administrator (RFC 7591)',
      body: RegistrationBody,
      response: { 201: Registered, ...refusals },
    },
    handler: async (request, reply) => {
      const given = givenMembers(RegistrationBody, request.body)
      const created = await registerClient(deps, request.log, given)
      const issuedAt = Math.floor(created.client.created_at.getTime() / 1000)
      const answer = { ...toClientBody(created), client_id_issued_at: issuedAt, client_secret_expires_at: 0 }
      return reply.code(201).header('cache-control', 'no-store').send(answer)
    },
  })
}
