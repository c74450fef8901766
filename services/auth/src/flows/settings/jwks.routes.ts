import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorResponses } from '../../http/bodies/shapes.ts'
import { requireOAuthServer } from '../../http/caller/require-oauth-server.ts'
import { type DiscoveryDeps, DiscoveryDocument, discoveryDocument } from './discovery.ts'

/** Time verifiers may cache the set. A new key has to be published at least as long before it signs. */
const CACHE_SECONDS = 600

export const jwksRoutes: FastifyPluginAsyncTypebox<DiscoveryDeps> = async (app, deps) => {
  const { config } = deps
  app.addHook('onSend', async (_request, reply) => {
    if (reply.statusCode === 200) reply.header('cache-control', `public, max-age=${CACHE_SECONDS}`)
  })

  app.route({
    method: 'GET',
    url: '/.well-known/jwks.json',
    schema: {
      operationId: 'getJwks',
      tags: ['service'],
      summary: 'Public keys that access tokens are verified with; empty while only a shared secret is configured',
      response: {
        200: Type.Object({ keys: Type.Array(Type.Object({}, { additionalProperties: true })) }),
        ...errorResponses(),
      },
    },
    handler: async () => ({ keys: deps.keys.publicJwks }),
  })

  let document: DiscoveryDocument | undefined
  const discover = async () => {
    document ??= discoveryDocument(deps, (method, url) => app.hasRoute({ method, url }))
    return document
  }
  const schema = { tags: ['service'], response: { 200: DiscoveryDocument, ...errorResponses() } }

  app.route({
    method: 'GET',
    url: OPENID_PATH,
    schema: {
      ...schema,
      operationId: 'getOpenidConfiguration',
      summary: 'Issuer, keys and endpoints (OpenID Connect Discovery)',
    },
    handler: discover,
  })

  await app.register(async (scope) => {
    requireOAuthServer(scope, config)
    scope.route({
      method: 'GET',
      url: OAUTH_PATH,
      schema: {
        ...schema,
        response: { ...schema.response, ...errorResponses(404) },
        operationId: 'getOauthAuthorizationServer',
        summary: 'The same for clients of OAuth (RFC 8414)',
      },
      handler: discover,
    })
    const { pathname } = new URL(config.server.externalUrl)
    if (pathname === '/') return
    // Clients put the path of an issuer behind the name of the document (RFC 8414, section 3.1).
    for (const path of [OPENID_PATH, OAUTH_PATH]) {
      scope.route({ method: 'GET', url: path + pathname, schema: { hide: true }, handler: discover })
    }
  })
}

const OPENID_PATH = '/.well-known/openid-configuration'
const OAUTH_PATH = '/.well-known/oauth-authorization-server'
