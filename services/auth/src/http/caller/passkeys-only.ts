import type { FastifyInstance } from 'fastify'
import { apiError } from '../../errors.ts'

/**
 * Refuses all of the scope and any other path of passkeys while they are disabled, before token and body are checked.
 */
export function requirePasskeys(app: FastifyInstance, { passkeys }: { passkeys: { enabled: boolean } }): void {
  if (passkeys.enabled) return
  app.addHook('onRequest', async () => {
    throw apiError('passkey_disabled')
  })
  app.route({
    method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    url: '/passkeys/*',
    schema: { hide: true },
    handler: async () => undefined,
  })
}
