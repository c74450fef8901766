import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { apiError } from '../../errors.ts'

/** SAML is not implemented: answers like a server that has it disabled, with 404 (contract/auth-external.md 5). */
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
