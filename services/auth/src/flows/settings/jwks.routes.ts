import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Deps } from '../../deps.ts'
import { errorResponses } from '../../http/bodies/shapes.ts'

/** Time verifiers may cache the set. A new key has to be published at least as long before it signs. */
const CACHE_SECONDS = 600

type JwksDeps = Pick<Deps, 'keys' | 'config'>

const OpenidConfiguration = Type.Object(
  {
    issuer: Type.String({ description: '`iss` of access tokens.' }),
    jwks_uri: Type.String(),
    id_token_signing_alg_values_supported: Type.Array(Type.String(), {
      description: 'Signature algorithms of tokens.',
    }),
    subject_types_supported: Type.Array(Type.String()),
    claims_supported: Type.Array(Type.String()),
  },
  { title: 'OpenidConfiguration' },
)

export const jwksRoutes: FastifyPluginAsyncTypebox<JwksDeps> = async (app, deps) => {
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

  app.route({
    method: 'GET',
    url: '/.well-known/openid-configuration',
    schema: {
      operationId: 'getOpenidConfiguration',
      tags: ['service'],
      summary: 'Issuer and keys for verifiers of access tokens (OpenID Connect Discovery)',
      response: { 200: OpenidConfiguration, ...errorResponses() },
    },
    handler: async () => openidConfiguration(deps),
  })
}

/**
 * Lists no endpoint of an authorization server: this is none. The keys are below the external URL; the issuer is any
 * name.
 */
function openidConfiguration({ keys, config: { jwt, server } }: JwksDeps) {
  const published = keys.publicJwks.map(({ alg }) => String(alg))
  return {
    issuer: jwt.issuer,
    jwks_uri: `${server.externalUrl}/.well-known/jwks.json`,
    id_token_signing_alg_values_supported: [...new Set([keys.alg, ...published])],
    subject_types_supported: ['public'],
    claims_supported: CLAIMS,
  }
}

const CLAIMS = ['iss', 'sub', 'aud', 'exp', 'iat', 'jti', 'role', 'email', 'phone', 'session_id', 'aal', 'amr']
