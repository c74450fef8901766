import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { USUAL_NAME } from '../../core/factors/factors.store.ts'
import { SessionShape } from '../../core/sessions/issue-tokens.ts'
import type { Deps } from '../../deps.ts'
import { errorResponses, Field, hookedResponses } from '../../http/bodies/shapes.ts'
import { ProofBody, proofFields } from '../../http/caller/given-proof.ts'
import { acceptLanguageOf } from '../../http/pages/mail-context.ts'
import { factorRequestOf } from './factors.routes.ts'
import {
  makeRecoveryCodeSet,
  NewRecoveryCodes,
  RecoveryCodesStatus,
  recoveryCodesLeft,
  removeRecoveryCodes,
  replaceRecoveryCodeSet,
  useRecoveryCode,
} from './recovery-codes.ts'

const url = '/factors/recovery-codes'
const security = [{ user: [] }]
const tags = ['second factors']

export const recoveryCodesRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url,
    schema: {
      operationId: 'getRecoveryCodes',
      tags,
      summary: 'Number of recovery codes left',
      security,
      response: { 200: RecoveryCodesStatus, ...errorResponses(400, 401, 403, 404) },
    },
    handler: (request) => recoveryCodesLeft(deps, factorRequestOf(deps, request)),
  })

  app.route({
    method: 'POST',
    url,
    schema: {
      operationId: 'createRecoveryCodes',
      tags,
      summary: 'Makes recovery codes for a user who has none; needs a session of aal2',
      security,
      body: Type.Union([Type.Object({ friendly_name: Type.Optional(Field), ...proofFields }), Type.Null()]),
      response: { 200: NewRecoveryCodes, ...errorResponses(400, 401, 403, 413, 422, 429) },
    },
    handler: async (request) => {
      const factorRequest = factorRequestOf(deps, request, request.body)
      await deps.limits.byAddress(request, 'user')
      return makeRecoveryCodeSet(deps, factorRequest, request.body?.friendly_name || USUAL_NAME)
    },
  })

  app.route({
    method: 'POST',
    url: `${url}/regenerate`,
    schema: {
      operationId: 'regenerateRecoveryCodes',
      tags,
      summary: 'Replaces the recovery codes; their id and name stay. Needs a session of aal2',
      security,
      body: ProofBody,
      response: { 200: NewRecoveryCodes, ...errorResponses(400, 401, 403, 404, 413, 422, 429) },
    },
    handler: async (request) => {
      const factorRequest = factorRequestOf(deps, request, request.body)
      await deps.limits.byAddress(request, 'user')
      return replaceRecoveryCodeSet(deps, factorRequest)
    },
  })

  app.route({
    method: 'POST',
    url: `${url}/verify`,
    schema: {
      operationId: 'verifyRecoveryCode',
      tags,
      summary: 'Uses up a recovery code: the session is aal2 afterwards and has a new refresh token',
      security,
      body: Type.Object({
        code: Type.Optional(
          Type.String({
            description: 'Recovery code; case, spaces and dashes are ignored.',
            ...inDocument({ required: true }),
          }),
        ),
      }),
      response: { 200: SessionShape, ...hookedResponses(400, 401, 403, 413, 422, 429) },
    },
    handler: async (request) => {
      const factorRequest = factorRequestOf(deps, request)
      await deps.limits.byAddress(request, 'factors')
      return useRecoveryCode(deps, factorRequest, request.body.code ?? '', acceptLanguageOf(request))
    },
  })

  app.route({
    method: 'DELETE',
    url,
    schema: {
      operationId: 'deleteRecoveryCodes',
      tags,
      summary: 'Removes the recovery codes; needs a session of aal2',
      security,
      body: ProofBody,
      response: {
        200: Type.Object({ id: Type.String({ format: 'uuid' }) }),
        ...errorResponses(400, 401, 403, 404, 413, 422, 429),
      },
    },
    handler: (request) => removeRecoveryCodes(deps, factorRequestOf(deps, request, request.body)),
  })
}
