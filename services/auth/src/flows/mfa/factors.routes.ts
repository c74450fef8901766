import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { SessionShape } from '../../core/sessions/issue-tokens.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { ChannelField, choiceOf, errorResponses, Field, hookedResponses } from '../../http/bodies/shapes.ts'
import { requireLiveSession } from '../../http/caller/authenticate.ts'
import { givenProof, ProofBody, proofFields } from '../../http/caller/given-proof.ts'
import { clientOf } from '../../http/limits/client.ts'
import { acceptLanguageOf } from '../../http/pages/mail-context.ts'
import { challengeFactor, OpenChallenge } from './challenge-factor.ts'
import { EnrolledFactor, enrollFactor, unenrollFactor } from './enroll-factor.ts'
import type { FactorRequest } from './require-factor.ts'
import { verifyFactor } from './verify-factor.ts'

const security = [{ user: [] }]
const params = Type.Object({ factor_id: Type.String() })

const VerifiedShape = Type.Object(
  {
    ...SessionShape.properties,
    recovery_codes: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Recovery codes, with the first verified factor. Each replaces a factor once; shown once.',
      }),
    ),
  },
  { title: 'RaisedSession' },
)

/** Reads a request about the caller's own factors. Throws no_authorization for an anonymous user. */
export function factorRequestOf(
  { config }: Deps,
  request: FastifyRequest,
  body?: Parameters<typeof givenProof>[2],
): FactorRequest {
  const caller = requireLiveSession(request)
  if (caller.user.is_anonymous) {
    throw apiError('no_authorization', { status: 403, message: 'Anonymous user not allowed to perform these actions' })
  }
  return { log: request.log, caller, proof: givenProof(request, config, body) }
}

export const factorsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const ipOf = (request: FastifyRequest) => clientOf(request, deps.config).ip

  app.route({
    method: 'POST',
    url: '/factors',
    schema: {
      operationId: 'enrollFactor',
      tags: ['second factors'],
      summary: 'Enrolls a second factor, which counts once it is verified',
      security,
      body: Type.Object({
        factor_type: Type.Optional(choiceOf(['totp', 'phone', 'webauthn'], { required: true })),
        friendly_name: Type.Optional(Field),
        issuer: Type.Optional(Type.String({ description: 'Name in the authenticator app; the site by default.' })),
        phone: Type.Optional(Field),
        ...proofFields,
      }),
      response: { 200: EnrolledFactor, ...errorResponses(400, 401, 403, 413, 422, 429) },
    },
    handler: async (request) => {
      const factorRequest = factorRequestOf(deps, request, request.body)
      await deps.limits.byAddress(request, 'user')
      const { factor_type: factorType, friendly_name: friendlyName, issuer, phone } = request.body
      return enrollFactor(deps, factorRequest, { factorType, friendlyName, issuer, phone })
    },
  })

  app.route({
    method: 'POST',
    url: '/factors/:factor_id/challenge',
    schema: {
      operationId: 'challengeFactor',
      tags: ['second factors'],
      summary: 'Opens a challenge to a second factor',
      security,
      params,
      body: Type.Union([
        Type.Object({
          channel: Type.Optional(ChannelField),
          webauthn: Type.Optional(Type.Unknown({ description: 'For a security key: rpId, rpOrigins.' })),
        }),
        Type.Null(),
      ]),
      response: { 200: OpenChallenge, ...hookedResponses(400, 401, 403, 404, 413, 422, 429) },
    },
    handler: async (request) => {
      const factorRequest = factorRequestOf(deps, request)
      await deps.limits.byAddress(request, 'factors')
      const { channel, webauthn } = request.body ?? {}
      const order = { factorId: request.params.factor_id, channel, webauthn, ip: ipOf(request) }
      return challengeFactor(deps, factorRequest, order)
    },
  })

  app.route({
    method: 'POST',
    url: '/factors/:factor_id/verify',
    schema: {
      operationId: 'verifyFactor',
      tags: ['second factors'],
      summary: 'Proves a second factor: the session is aal2 afterwards and has a new refresh token',
      security,
      params,
      body: Type.Object({
        challenge_id: Type.Optional(Field),
        code: Type.Optional(Field),
        webauthn: Type.Optional(Type.Unknown({ description: 'Answer of the browser: type, credential_response.' })),
        ...proofFields,
      }),
      response: { 200: VerifiedShape, ...hookedResponses(400, 401, 403, 404, 413, 422, 429) },
    },
    handler: async (request) => {
      const factorRequest = factorRequestOf(deps, request, request.body)
      await deps.limits.byAddress(request, 'factors')
      const { challenge_id: challengeId, code, webauthn } = request.body
      const origin = { ip: ipOf(request), acceptLanguage: acceptLanguageOf(request) }
      return verifyFactor(deps, factorRequest, {
        factorId: request.params.factor_id,
        challengeId,
        code,
        webauthn,
        ...origin,
      })
    },
  })

  app.route({
    method: 'DELETE',
    url: '/factors/:factor_id',
    schema: {
      operationId: 'unenrollFactor',
      tags: ['second factors'],
      summary: 'Removes a second factor; a proven one needs a session of aal2',
      security,
      params,
      body: ProofBody,
      response: {
        200: Type.Object({ id: Type.String({ format: 'uuid' }) }),
        ...errorResponses(400, 401, 403, 404, 409, 413, 422, 429),
      },
    },
    handler: async (request) => {
      const factorRequest = factorRequestOf(deps, request, request.body)
      return unenrollFactor(deps, factorRequest, request.params.factor_id, acceptLanguageOf(request))
    },
  })
}
