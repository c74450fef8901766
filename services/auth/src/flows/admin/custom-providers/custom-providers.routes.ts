// Providers of one's own by the API (contract/auth-custom-providers.md). Rules: provider-fields.ts; changes:
// save-provider.ts; use: core/custom-providers. Tests: here.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withHeaders } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { findCustomProvider, listCustomProviders } from '../../../core/custom-providers/custom-providers.store.ts'
import { isIdentifier } from '../../../core/custom-providers/find-custom-provider.ts'
import type { CustomProvider } from '../../../db/tables.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import {
  LargePageQuery,
  MAX_PER_PAGE,
  PAGE_HEADERS,
  pageHeaders,
  parsePage,
  reachedPage,
} from '../../../http/bodies/paging.ts'
import { choiceOf, errorResponses } from '../../../http/bodies/shapes.ts'
import { adminOf } from '../../../http/caller/admin-only.ts'
import { CLEARABLE, NewProvider, ProviderChange, requirePrefix } from './provider-fields.ts'
import { createCustomProvider, noSuchProvider, removeCustomProvider, updateCustomProvider } from './save-provider.ts'

const Texts = Type.Array(Type.String())
const Time = Type.String({ format: 'date-time' })
const Text = Type.Optional(Type.String())

const DiscoveryShape = Type.Object(
  {
    ...{ issuer: Type.String(), authorization_endpoint: Type.String(), token_endpoint: Type.String() },
    ...{ jwks_uri: Type.String(), userinfo_endpoint: Text },
    scopes_supported: Type.Optional(Texts),
    response_types_supported: Type.Optional(Texts),
    grant_types_supported: Type.Optional(Texts),
    subject_types_supported: Type.Optional(Texts),
  },
  { title: 'DiscoveryDocument', description: 'Description of the provider that was fetched last.' },
)

const ProviderShape = Type.Object(
  {
    id: Type.String(),
    provider_type: choiceOf(['oauth2', 'oidc']),
    identifier: Type.String(),
    name: Type.String(),
    client_id: Type.String(),
    acceptable_client_ids: Texts,
    scopes: Texts,
    pkce_enabled: Type.Boolean(),
    attribute_mapping: Type.Record(Type.String(), Type.Unknown()),
    custom_claims_allowlist: Texts,
    authorization_params: Type.Record(Type.String(), Type.String()),
    enabled: Type.Boolean(),
    listed: Type.Boolean({ description: 'Whether GET /settings shows it.' }),
    email_optional: Type.Boolean(),
    linking: Type.String(),
    ...{ issuer: Text, discovery_url: Text, skip_nonce_check: Type.Optional(Type.Boolean()) },
    discovery_document: Type.Optional(DiscoveryShape),
    ...{ authorization_url: Text, token_url: Text, userinfo_url: Text, jwks_uri: Text },
    created_at: Time,
    updated_at: Time,
  },
  { title: 'CustomProvider' },
)

const schema = { tags: ['admin'], security: [{ admin: [] }] }
const Params = Type.Object({ identifier: Type.String() })

export const customProvidersRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  // After the check of the token, before the body.
  app.addHook('onRequest', async () => {
    if (deps.config.customProviders.enabled) return
    throw apiError('feature_disabled', { message: 'Custom OAuth providers are disabled' })
  })

  app.route({
    method: 'GET',
    url: '/admin/custom-providers',
    schema: {
      ...schema,
      operationId: 'listCustomProviders',
      summary: 'Providers of the API, newest first',
      querystring: Type.Object({ type: Type.Optional(choiceOf(['oauth2', 'oidc'])), ...LargePageQuery }),
      response: {
        200: withHeaders(Type.Object({ providers: Type.Array(ProviderShape) }), ...PAGE_HEADERS),
        ...errorResponses(400, 401, 403, 404),
      },
    },
    handler: async (request, reply) => {
      const type = request.query.type || undefined
      if (type !== undefined && type !== 'oauth2' && type !== 'oidc') {
        throw apiError('validation_failed', { message: "type must be either 'oauth2' or 'oidc'" })
      }
      const page = parsePage(request.query, { perPage: MAX_PER_PAGE })
      const { rows, total } = await reachedPage(page, (reached) => listCustomProviders(deps.db, type, reached))
      reply.headers(pageHeaders(request.url, page, total))
      return { providers: rows.map((row) => toBody({ ...row, discovery_document: null })) }
    },
  })

  app.route({
    method: 'POST',
    url: '/admin/custom-providers',
    schema: {
      ...schema,
      operationId: 'createCustomProvider',
      summary: 'Adds a provider of OAuth 2 or OpenID Connect',
      body: NewProvider,
      response: { 201: ProviderShape, ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      const created = await createCustomProvider(deps, request.log, adminOf(request), request.body)
      return reply.code(201).send(toBody(created))
    },
  })

  app.route({
    method: 'GET',
    url: '/admin/custom-providers/:identifier',
    schema: {
      ...schema,
      operationId: 'getCustomProvider',
      summary: 'A provider of the API',
      params: Params,
      response: { 200: ProviderShape, ...errorResponses(400, 401, 403, 404) },
    },
    handler: async (request) => {
      const { identifier } = request.params
      requireIdentifier(identifier)
      return toBody((await findCustomProvider(deps.db, identifier)) ?? noSuchProvider())
    },
  })

  app.route({
    method: 'PUT',
    url: '/admin/custom-providers/:identifier',
    config: { clearable: CLEARABLE },
    schema: {
      ...schema,
      operationId: 'updateCustomProvider',
      summary: 'Changes the given fields of a provider',
      params: Params,
      body: ProviderChange,
      response: { 200: ProviderShape, ...errorResponses(400, 401, 403, 404, 409, 413) },
    },
    handler: async (request) => {
      const { identifier } = request.params
      requireIdentifier(identifier)
      const order = { identifier, input: request.body }
      return toBody(await updateCustomProvider(deps, request.log, adminOf(request), order))
    },
  })

  app.route({
    method: 'DELETE',
    url: '/admin/custom-providers/:identifier',
    schema: {
      ...schema,
      operationId: 'deleteCustomProvider',
      summary: 'Deletes a provider; users and identities stay',
      params: Params,
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404) },
    },
    handler: async (request, reply) => {
      const { identifier } = request.params
      requireIdentifier(identifier)
      await removeCustomProvider(deps, request.log, adminOf(request), identifier)
      return reply.code(204).send(null)
    },
  })
}

/** Throws for an identifier that no provider can have, which the database might not take. */
function requireIdentifier(identifier: string): void {
  requirePrefix(identifier)
  if (!isIdentifier(identifier)) noSuchProvider()
}

/** Members of one type are left out for the other, and the secret always. */
function toBody({ sealed_secret: _sealed, discovered_at: _at, version: _version, ...row }: CustomProvider) {
  const { skip_nonce_check, created_at, updated_at, ...rest } = row
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null))
  return {
    ...(given as Omit<typeof rest, NullableMember>),
    ...(row.provider_type === 'oidc' && { skip_nonce_check }),
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
  }
}

type NullableMember =
  | 'issuer'
  | 'discovery_url'
  | 'discovery_document'
  | 'authorization_url'
  | 'token_url'
  | 'userinfo_url'
  | 'jwks_uri'
