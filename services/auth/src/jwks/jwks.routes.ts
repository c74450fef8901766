import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorResponses } from '../http/shapes.ts'
import type { SigningKeys } from './signing-keys.ts'

/** Verifiers may keep the set this long; a new key must be published at least as long before it signs. */
const CACHE_SECONDS = 600

export const jwksRoutes: FastifyPluginAsyncTypebox<{ keys: SigningKeys }> = async (app, { keys }) => {
  app.route({
    method: 'GET',
    url: '/.well-known/jwks.json',
    schema: {
      tags: ['service'],
      summary: 'Public keys that access tokens are verified with; empty while only a shared secret is configured',
      response: {
        200: Type.Object({ keys: Type.Array(Type.Object({}, { additionalProperties: true })) }),
        ...errorResponses(),
      },
    },
    handler: async (_request, reply) => {
      reply.header('cache-control', `public, max-age=${CACHE_SECONDS}`)
      return { keys: keys.publicJwks }
    },
  })
}
