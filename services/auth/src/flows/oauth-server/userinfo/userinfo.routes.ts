// Userinfo (OpenID Connect Core 5.3): the claims that the scopes of the token open, as they are now. A token of the
// account itself has no scopes and reads `sub` alone. Tests: here.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import { Type } from 'typebox'
import { isOwnScope } from '../../../core/oauth-server/oauth-scopes.ts'
import { listOwnScopes } from '../../../core/oauth-server/own-scopes.ts'
import { claimsOf } from '../../../core/oauth-server/scopes/claims-of.ts'
import type { Deps } from '../../../deps.ts'
import { apiError, type ErrorCode } from '../../../errors.ts'
import { errorResponses } from '../../../http/bodies/shapes.ts'
import { authenticate, callerOf } from '../../../http/caller/authenticate.ts'

const ClaimsShape = Type.Object(
  { sub: Type.String({ format: 'uuid' }) },
  { title: 'Userinfo', additionalProperties: true, description: 'Claims by the scopes of the token.' },
)

const METHODS = [
  ['GET', 'getUserinfo'],
  ['POST', 'postUserinfo'],
] as const

/** Answers 401 to a useless token (RFC 6750, section 3.1), for which the rest of the API has the 403 of its clients. */
function asInvalidToken(error: unknown): never {
  const isUseless = error instanceof ApiError && error.status === 403 && error.code !== 'insufficient_scope'
  throw isUseless ? apiError(error.code as ErrorCode, { status: 401, message: error.message }) : error
}

export const userinfoRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.decorateRequest('caller', null)
  app.addHook('onRequest', async (request) => {
    request.caller = await authenticate(request, deps).catch(asInvalidToken)
  })

  for (const [method, operationId] of METHODS) {
    app.route({
      method,
      url: '/oauth/userinfo',
      schema: {
        operationId,
        tags: ['OAuth server'],
        summary: 'Claims about the user of the token, by its scopes',
        security: [{ user: [] }],
        response: { 200: ClaimsShape, ...errorResponses(400, 401, 403, 404) },
      },
      handler: async (request) => {
        const { user, scopes = [] } = callerOf(request)
        const own = scopes.some(isOwnScope) ? await listOwnScopes(deps) : []
        const claims = claimsOf(user, scopes, own)
        // The spelling of supabase/auth beside the standard one.
        const phone = claims.phone_number ? { phone: user.phone, phone_verified: claims.phone_number_verified } : {}
        return { sub: user.id, ...claims, ...phone }
      },
    })
  }
}
