// The caller's own passkeys: registering, listing, renaming and removing them. Sign-in: sign-in.routes.ts; challenges
// and rows: core/passkeys/. Tests: here.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { PasskeyShape, toPasskeyBody } from '../../core/passkeys/passkey-shape.ts'
import { listPasskeys } from '../../core/passkeys/passkeys.store.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { errorResponses, Field, NeededField } from '../../http/bodies/shapes.ts'
import { callerOf, requireLiveSession } from '../../http/caller/authenticate.ts'
import { givenProof, ProofBody } from '../../http/caller/given-proof.ts'
import { acceptLanguageOf } from '../../http/pages/mail-context.ts'
import { deleteOwnPasskey, renameOwnPasskey } from './own-passkeys.ts'
import { beginRegistration, completeRegistration, type PasskeyRequest } from './register-passkey.ts'

const schema = { tags: ['passkeys'], security: [{ user: [] }] }
const params = Type.Object({ passkey_id: Type.String() })

/** Body of an answer to a challenge; both members are needed, and the handler says so. */
export const AnswerBody = Type.Object(
  {
    challenge_id: Type.Optional(NeededField),
    credential: Type.Optional(Type.Unknown({ description: 'Credential of the browser as JSON.' })),
  },
  { title: 'PasskeyAnswer' },
)

/** A challenge as the browser gets it. */
export const ChallengeShape = Type.Object(
  {
    challenge_id: Type.String({ format: 'uuid' }),
    options: Type.Object(
      {},
      {
        additionalProperties: true,
        description: 'PublicKeyCredentialCreationOptions or, for a sign-in, PublicKeyCredentialRequestOptions as JSON.',
      },
    ),
    expires_at: Type.Integer({ description: 'Unix seconds.' }),
  },
  { title: 'PasskeyChallenge' },
)

export const passkeysRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  /** Reads a request about the caller's passkeys. Throws no_authorization for an anonymous user. */
  function passkeyRequestOf(request: FastifyRequest, body?: Parameters<typeof givenProof>[2]): PasskeyRequest {
    const caller = requireLiveSession(request)
    if (caller.user.is_anonymous) {
      const message = 'Anonymous user not allowed to perform these actions'
      throw apiError('no_authorization', { status: 403, message })
    }
    const proof = givenProof(request, deps.config, body)
    return { log: request.log, caller, proof, acceptLanguage: acceptLanguageOf(request) }
  }

  app.route({
    method: 'POST',
    url: '/passkeys/registration/options',
    schema: {
      ...schema,
      operationId: 'beginPasskeyRegistration',
      summary: 'Begins the registration of a passkey',
      body: ProofBody,
      response: {
        200: ChallengeShape,
        ...errorResponses(400, 401, 403, 404, 413, 422, 429),
      },
    },
    handler: async (request) => {
      const passkeyRequest = passkeyRequestOf(request, request.body)
      await deps.limits.byAddress(request, 'passkeyRegistration')
      return beginRegistration(deps, passkeyRequest)
    },
  })

  app.route({
    method: 'POST',
    url: '/passkeys/registration/verify',
    schema: {
      ...schema,
      operationId: 'registerPasskey',
      summary: "Stores the browser's new passkey, which signs its user in from now on",
      body: AnswerBody,
      response: {
        200: Type.Object({
          id: Type.String({ format: 'uuid' }),
          friendly_name: Type.String(),
          created_at: Type.String({ format: 'date-time' }),
        }),
        ...errorResponses(400, 401, 403, 404, 413, 422),
      },
    },
    handler: async (request) => {
      const { challenge_id: challengeId, credential } = request.body
      return completeRegistration(deps, passkeyRequestOf(request), { challengeId, credential })
    },
  })

  app.route({
    method: 'GET',
    url: '/passkeys',
    schema: {
      ...schema,
      operationId: 'listPasskeys',
      summary: "The user's passkeys, oldest first",
      response: { 200: Type.Array(PasskeyShape), ...errorResponses(400, 401, 403, 404) },
    },
    handler: async (request) => (await listPasskeys(deps.db, callerOf(request).user.id)).map(toPasskeyBody),
  })

  app.route({
    method: 'GET',
    url: '/passkeys/signal',
    schema: {
      ...schema,
      operationId: 'getAcceptedPasskeys',
      summary:
        'Parameters of PublicKeyCredential.signalAllAcceptedCredentials, by which browsers forget removed passkeys',
      response: {
        200: Type.Object({
          rp_id: Type.String(),
          user_id: Type.String({ description: 'In base64url, as the credential ids.' }),
          credential_ids: Type.Array(Type.String()),
        }),
        ...errorResponses(400, 401, 403, 404),
      },
    },
    handler: async (request) => {
      const { id } = callerOf(request).user
      return {
        rp_id: deps.config.passkeys.party.rpId,
        user_id: Buffer.from(id).toString('base64url'),
        credential_ids: (await listPasskeys(deps.db, id)).map(({ credential_id: credentialId }) => credentialId),
      }
    },
  })

  app.route({
    method: 'PATCH',
    url: '/passkeys/:passkey_id',
    schema: {
      ...schema,
      operationId: 'renamePasskey',
      summary: 'Renames a passkey',
      params,
      body: Type.Object({ friendly_name: Type.Optional(Field) }),
      response: { 200: PasskeyShape, ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: (request) =>
      renameOwnPasskey(deps, passkeyRequestOf(request), request.params.passkey_id, request.body.friendly_name ?? ''),
  })

  app.route({
    method: 'DELETE',
    url: '/passkeys/:passkey_id',
    schema: {
      ...schema,
      operationId: 'deletePasskey',
      summary: 'Removes a passkey and ends the sessions that it started, except that of the request',
      params,
      body: ProofBody,
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413, 422, 429) },
    },
    handler: async (request, reply) => {
      await deleteOwnPasskey(deps, passkeyRequestOf(request, request.body), request.params.passkey_id)
      return reply.code(204).send(null)
    },
  })
}
