// Clients of the OAuth server by the admin API (contract/auth-oauth-server.md 2). Rules: core/oauth-server; changes:
// manage-clients.ts; shapes: http/bodies/oauth-client.ts. Tests: here and test/auth-js/oauth-clients.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withHeaders } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { createClient } from '../../../core/oauth-server/create-client.ts'
import { findOAuthClient, listOAuthClients } from '../../../core/oauth-server/oauth-clients.store.ts'
import type { Deps } from '../../../deps.ts'
import {
  CLEARABLE,
  ClientBody,
  ClientParams,
  ClientShape,
  givenMembers,
  requireClientId,
  toClientBody,
} from '../../../http/bodies/oauth-client.ts'
import { PAGE_HEADERS, PageQuery, pageHeaders, parsePage, reachedPage } from '../../../http/bodies/paging.ts'
import { errorResponses } from '../../../http/bodies/shapes.ts'
import { adminOf } from '../../../http/caller/admin-only.ts'
import { requireOAuthServer } from '../../../http/caller/require-oauth-server.ts'
import { noSuchClient, regenerateSecret, removeClient, updateClient } from './manage-clients.ts'

const schema = { tags: ['admin'], security: [{ admin: [] }] }

export const oauthClientsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireOAuthServer(app, deps.config)

  app.route({
    method: 'GET',
    url: '/admin/oauth/clients',
    schema: {
      ...schema,
      operationId: 'listOAuthClients',
      summary: 'Clients of the OAuth server, newest first',
      querystring: Type.Object(PageQuery),
      response: {
        200: withHeaders(Type.Object({ clients: Type.Array(ClientShape) }), ...PAGE_HEADERS),
        ...errorResponses(400, 401, 403, 404),
      },
    },
    handler: async (request, reply) => {
      const page = parsePage(request.query)
      const { rows, total } = await reachedPage(page, (reached) => listOAuthClients(deps.db, reached))
      reply.headers(pageHeaders(request.url, page, total))
      return { clients: rows.map((client) => toClientBody({ client })) }
    },
  })

  app.route({
    method: 'POST',
    url: '/admin/oauth/clients',
    schema: {
      ...schema,
      operationId: 'createOAuthClient',
      summary: 'Registers a client; the answer alone has its secret',
      body: ClientBody,
      response: { 201: ClientShape, ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      const created = await createClient(deps, request.log, adminOf(request), givenMembers(ClientBody, request.body))
      return reply.code(201).header('cache-control', 'no-store').send(toClientBody(created))
    },
  })

  app.route({
    method: 'GET',
    url: '/admin/oauth/clients/:client_id',
    schema: {
      ...schema,
      operationId: 'getOAuthClient',
      summary: 'A client of the OAuth server',
      params: ClientParams,
      response: { 200: ClientShape, ...errorResponses(400, 401, 403, 404) },
    },
    handler: async (request) => {
      const id = requireClientId(request.params.client_id)
      return toClientBody({ client: (await findOAuthClient(deps.db, id)) ?? noSuchClient() })
    },
  })

  app.route({
    method: 'PUT',
    url: '/admin/oauth/clients/:client_id',
    config: { clearable: CLEARABLE },
    schema: {
      ...schema,
      operationId: 'updateOAuthClient',
      summary: 'Changes the given members of a client; empty text removes one',
      params: ClientParams,
      body: ClientBody,
      response: { 200: ClientShape, ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request) => {
      const order = { id: requireClientId(request.params.client_id), given: givenMembers(ClientBody, request.body) }
      return toClientBody({ client: await updateClient(deps, request.log, adminOf(request), order) })
    },
  })

  app.route({
    method: 'DELETE',
    url: '/admin/oauth/clients/:client_id',
    schema: {
      ...schema,
      operationId: 'deleteOAuthClient',
      summary: 'Deletes a client',
      params: ClientParams,
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404) },
    },
    handler: async (request, reply) => {
      await removeClient(deps, request.log, adminOf(request), requireClientId(request.params.client_id))
      return reply.code(204).send(null)
    },
  })

  app.route({
    method: 'POST',
    url: '/admin/oauth/clients/:client_id/regenerate_secret',
    schema: {
      ...schema,
      operationId: 'regenerateOAuthClientSecret',
      summary: 'Replaces the secret of a client; the earlier one ends at once',
      params: ClientParams,
      response: { 200: ClientShape, ...errorResponses(400, 401, 403, 404) },
    },
    handler: async (request, reply) => {
      const id = requireClientId(request.params.client_id)
      const shown = await regenerateSecret(deps, request.log, adminOf(request), id)
      return reply.header('cache-control', 'no-store').send(toClientBody(shown))
    },
  })
}
