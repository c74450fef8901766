// Documents about passkeys that browsers and password managers fetch from the domain of the relying party. They apply
// where the service answers on that domain, or where its server passes these paths on.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Config } from '../../config.ts'
import { errorResponses } from '../../http/bodies/shapes.ts'

export const passkeyDocumentRoutes: FastifyPluginAsyncTypebox<{ config: Pick<Config, 'passkeys'> }> = async (
  app,
  { config },
) => {
  const { party, pages } = config.passkeys

  app.route({
    method: 'GET',
    url: '/.well-known/webauthn',
    schema: {
      operationId: 'getRelatedOrigins',
      tags: ['passkeys'],
      summary: 'Origins that may use passkeys of this domain (WebAuthn 5.11)',
      response: { 200: Type.Object({ origins: Type.Array(Type.String()) }), ...errorResponses(404) },
    },
    handler: async () => ({ origins: party.origins.filter((origin) => /^https?:/.test(origin)) }),
  })

  app.route({
    method: 'GET',
    url: '/.well-known/passkey-endpoints',
    schema: {
      operationId: 'getPasskeyEndpoints',
      tags: ['passkeys'],
      summary: 'Pages of the application where users add and manage passkeys',
      response: {
        200: Type.Object({ enroll: Type.Optional(Type.String()), manage: Type.Optional(Type.String()) }),
        ...errorResponses(404),
      },
    },
    handler: async () => pages,
  })
}
