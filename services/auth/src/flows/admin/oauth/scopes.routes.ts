// Scopes of an operator for other services, by the admin API (contract/auth-oauth-server.md 3). Rules:
// core/oauth-server/oauth-scopes.ts; changes: manage-scopes.ts. Tests: here.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Deps } from '../../../deps.ts'
import { choiceOf, errorResponses } from '../../../http/bodies/shapes.ts'
import { adminOf } from '../../../http/caller/admin-only.ts'
import { requireOAuthServer } from '../../../http/caller/require-oauth-server.ts'
import { createScope, findScope, listScopes, removeScope, updateScope } from './manage-scopes.ts'

const Descriptions = Type.Record(Type.String(), Type.String(), { description: 'Descriptions by language tag.' })
const Claims = Type.Array(Type.String(), {
  description: 'Paths into the metadata of a user that become claims, such as `app_metadata.plan`.',
})
const Default = Type.Boolean({ description: 'Whether a request that names no scope gets it.' })

const ScopeShape = Type.Object(
  {
    ...{ name: Type.String(), description: Type.String(), descriptions: Descriptions, claims: Claims },
    default: Default,
    origin: choiceOf(['settings', 'admin_api']),
    created_at: Type.Optional(Type.String({ format: 'date-time' })),
    updated_at: Type.Optional(Type.String({ format: 'date-time' })),
  },
  { title: 'OAuthScope' },
)

const members = {
  description: Type.Optional(Type.String({ description: 'Meaning for people, required, up to 300 characters.' })),
  descriptions: Type.Optional(Descriptions),
  claims: Type.Optional(Claims),
  default: Type.Optional(Default),
}
const NewScope = Type.Object({
  name: Type.Optional(Type.String({ description: 'Required; up to 64 of a-z, 0-9, :, ., _ and -. Never changes.' })),
  ...members,
})
const ScopeChange = Type.Object(members)

const schema = { tags: ['admin'], security: [{ admin: [] }] }
const Params = Type.Object({ name: Type.String() })

/** Picks the members of a schema: no other one of a body reaches a row. */
const membersOf = <Body extends object>({ properties }: { properties: object }, body: Body): Body =>
  Object.fromEntries(Object.entries(body).filter(([name]) => Object.hasOwn(properties, name))) as Body

export const oauthScopesRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireOAuthServer(app, deps.config)

  app.route({
    method: 'GET',
    url: '/admin/oauth/scopes',
    schema: {
      ...schema,
      operationId: 'listOAuthScopes',
      summary: 'Scopes for other services, of the settings and of this API',
      response: { 200: Type.Object({ scopes: Type.Array(ScopeShape) }), ...errorResponses(401, 403, 404) },
    },
    handler: async () => ({ scopes: await listScopes(deps) }),
  })

  app.route({
    method: 'POST',
    url: '/admin/oauth/scopes',
    schema: {
      ...schema,
      operationId: 'createOAuthScope',
      summary: 'Adds a scope for other services',
      body: NewScope,
      response: { 201: ScopeShape, ...errorResponses(400, 401, 403, 404, 409, 413) },
    },
    handler: async (request, reply) => {
      const given = membersOf(NewScope, request.body)
      return reply.code(201).send(await createScope(deps, request.log, adminOf(request), given))
    },
  })

  app.route({
    method: 'GET',
    url: '/admin/oauth/scopes/:name',
    schema: {
      ...schema,
      operationId: 'getOAuthScope',
      summary: 'A scope for other services',
      params: Params,
      response: { 200: ScopeShape, ...errorResponses(401, 403, 404) },
    },
    handler: (request) => findScope(deps, request.params.name),
  })

  app.route({
    method: 'PUT',
    url: '/admin/oauth/scopes/:name',
    schema: {
      ...schema,
      operationId: 'updateOAuthScope',
      summary: 'Changes the given members of a scope',
      params: Params,
      body: ScopeChange,
      response: { 200: ScopeShape, ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: (request) => {
      const order = { name: request.params.name, given: membersOf(ScopeChange, request.body) }
      return updateScope(deps, request.log, adminOf(request), order)
    },
  })

  app.route({
    method: 'DELETE',
    url: '/admin/oauth/scopes/:name',
    schema: {
      ...schema,
      operationId: 'deleteOAuthScope',
      summary: 'Deletes a scope; registrations that name it keep the name, without effect',
      params: Params,
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404) },
    },
    handler: async (request, reply) => {
      await removeScope(deps, request.log, adminOf(request), request.params.name)
      return reply.code(204).send(null)
    },
  })
}
