import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { apiError } from '../../errors.ts'

/**
 * Answers every path below /sso as a server that has SAML off, whatever the body holds: it does not exist yet. The status is the
 * 404 of all features that are off (contract/auth-external.md 5).
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
