import type { FastifyInstance } from 'fastify'
import type { Config } from '../../config.ts'
import { apiError } from '../../errors.ts'

/** Refuses requests while the OAuth server is disabled, after the check of the token and before the body. */
export function requireOAuthServer(app: FastifyInstance, { oauthServer }: Pick<Config, 'oauthServer'>): void {
  app.addHook('onRequest', async () => {
    if (!oauthServer.enabled) throw apiError('feature_disabled', { message: 'OAuth server is disabled' })
  })
}
