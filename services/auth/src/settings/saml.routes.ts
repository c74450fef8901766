import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { apiError } from '../errors.ts'

/**
 * Sign-in by SAML does not exist yet: clients get the answer of a server that has it off, whatever the body holds
 * (contract/auth-external.md 5).
 */
export const samlRoutes: FastifyPluginAsyncTypebox = async (app) => {
  for (const [method, url] of [
    ['POST', '/sso'],
    ['GET', '/sso/saml/metadata'],
    ['POST', '/sso/saml/acs'],
  ] as const) {
    app.route({
      method,
      url,
      schema: { hide: true },
      onRequest: async () => {
        throw apiError('saml_provider_disabled')
      },
      handler: async () => undefined,
    })
  }
}
