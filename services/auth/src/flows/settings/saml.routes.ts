import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { apiError } from '../../errors.ts'

/**
 * Answers every path below /sso like a server with SAML disabled: it is not implemented. The status is the 404 of all disabled
 * features (contract/auth-sso-saml.md 1).
 */
export const samlRoutes: FastifyPluginAsyncTypebox = async (app) => {
  for (const url of ['/sso', '/sso/*']) {
    app.route({
      method: ['GET', 'POST'],
      url,
      schema: { hide: true },
      onRequest: async () => {
        throw apiError('saml_provider_disabled')
      },
      handler: async () => undefined,
    })
  }
}
