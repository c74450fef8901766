import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { endGrant } from '../../../core/oauth-server/authorizations/end-grant.ts'
import { listGrants } from '../../../core/oauth-server/authorizations/grants.store.ts'
import type { Deps } from '../../../deps.ts'
import { requireClientId } from '../../../http/bodies/oauth-client.ts'
import { errorResponses } from '../../../http/bodies/shapes.ts'
import { adminOf } from '../../../http/caller/admin-only.ts'
import { requireOAuthServer } from '../../../http/caller/require-oauth-server.ts'
import { subjectOf } from '../../../http/caller/subject.ts'

const schema = { tags: ['admin'], security: [{ admin: [] }] }

const Text = Type.Optional(Type.String())

const GrantShape = Type.Object(
  {
    client: Type.Object({
      id: Type.String({ description: 'Id of the client in the admin API.' }),
      ...{ name: Text, uri: Text, logo_uri: Text },
    }),
    scopes: Type.Array(Type.String()),
    granted_at: Type.String({ format: 'date-time', description: 'Time of the latest agreement.' }),
  },
  { title: 'UserGrant' },
)

/** Applications that the user of the path has agreed to (contract/auth-oauth-server.md). */
export const adminGrantsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireOAuthServer(app, deps.config)

  app.route({
    method: 'GET',
    url: '/admin/users/:user_id/oauth/grants',
    schema: {
      ...schema,
      operationId: 'adminListGrants',
      summary: 'Applications that a user has agreed to, newest first',
      params: Type.Object({ user_id: Type.String() }),
      response: { 200: Type.Array(GrantShape), ...errorResponses(401, 403, 404) },
    },
    handler: async (request) => {
      const grants = await listGrants(deps.db, subjectOf(request).id)
      return grants.map(({ id, client_name: name, client_uri: uri, logo_uri, scopes, updated_at }) => ({
        client: { id, ...(name && { name }), ...(uri && { uri }), ...(logo_uri && { logo_uri }) },
        scopes,
        granted_at: updated_at.toISOString(),
      }))
    },
  })

  app.route({
    method: 'DELETE',
    url: '/admin/users/:user_id/oauth/grants/:client_id',
    schema: {
      ...schema,
      operationId: 'adminDeleteGrant',
      summary: "Withdraws a user's consent, and ends the client's sessions of the user",
      params: Type.Object({ user_id: Type.String(), client_id: Type.String() }),
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      const clientId = requireClientId(request.params.client_id)
      await endGrant(deps, request.log, adminOf(request), { owner: subjectOf(request), clientId })
      return reply.code(204).send(null)
    },
  })
}
