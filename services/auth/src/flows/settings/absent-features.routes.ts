import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { apiError } from '../../errors.ts'

const saml = () => apiError('saml_provider_disabled')

/**
 * Features that do not exist here, by the caller whose token they need. Their paths answer like a server that has them
 * disabled, which clients distinguish from a wrong address (contract/auth-external.md 5 and 6).
 */
const ABSENT = {
  anyone: {
    '/sso': saml,
    '/scim': () => apiError('feature_disabled', { message: 'SCIM server is disabled' }),
  },
  admin: { '/admin/sso': saml },
}

export const absentFeatureRoutes: FastifyPluginAsyncTypebox<{ caller: keyof typeof ABSENT }> = async (
  app,
  { caller },
) => {
  for (const [path, refusal] of Object.entries(ABSENT[caller])) {
    for (const url of [path, `${path}/*`]) {
      app.route({
        method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
        url,
        schema: { hide: true },
        // After the scope's check of the token, before the body.
        onRequest: async () => {
          throw refusal()
        },
        handler: async () => undefined,
      })
    }
  }
}
