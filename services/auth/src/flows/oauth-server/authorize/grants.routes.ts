import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { ShownClient, shownClient } from '../../../core/oauth-server/authorizations/authorization-details.ts'
import { findKnownClientId } from '../../../core/oauth-server/authorizations/authorizations.store.ts'
import { endGrant } from '../../../core/oauth-server/authorizations/end-grant.ts'
import { listGrants } from '../../../core/oauth-server/authorizations/grants.store.ts'
import { isDocumentAddress } from '../../../core/oauth-server/documents/read-document.ts'
import { UUID } from '../../../db/uuid.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { errorResponses, NeededField } from '../../../http/bodies/shapes.ts'
import { callerOf, requireLiveSession } from '../../../http/caller/authenticate.ts'
import { requireOAuthServer } from '../../../http/caller/require-oauth-server.ts'

const schema = { tags: ['OAuth server'], security: [{ user: [] }] }

const Grant = Type.Object(
  {
    client: ShownClient,
    scopes: Type.Array(Type.String()),
    granted_at: Type.String({ format: 'date-time', description: 'Time of the latest agreement.' }),
  },
  { title: 'OAuthGrant' },
)

export const ownGrantsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireOAuthServer(app, deps.config)

  app.route({
    method: 'GET',
    url: '/user/oauth/grants',
    schema: {
      ...schema,
      operationId: 'listGrants',
      summary: 'Applications that the user has agreed to, newest first',
      response: { 200: Type.Array(Grant), ...errorResponses(400, 401, 403, 404) },
    },
    handler: async (request) => {
      const grants = await listGrants(deps.db, callerOf(request).user.id)
      return grants.map((grant) => ({
        client: shownClient(grant),
        scopes: grant.scopes,
        granted_at: grant.updated_at.toISOString(),
      }))
    },
  })

  app.route({
    method: 'DELETE',
    url: '/user/oauth/grants',
    schema: {
      ...schema,
      operationId: 'revokeGrant',
      summary: 'Withdraws the agreement, and ends the sessions of the application',
      querystring: Type.Object({ client_id: Type.Optional(NeededField) }),
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      const { client_id: given } = request.query
      if (!given) throw invalid('client_id query parameter is required')
      if (!UUID.test(given) && !isDocumentAddress(given)) throw invalid('invalid client_id format')
      const { user } = requireLiveSession(request)
      const clientId = await findKnownClientId(deps.db, given)
      if (clientId === undefined) throw apiError('oauth_consent_not_found')
      await endGrant(deps, request.log, user, { owner: user, clientId })
      return reply.code(204).send(null)
    },
  })
}

const invalid = (message: string) => apiError('validation_failed', { message })
