import type { FastifyInstance } from 'fastify'
import { apiError } from '../../errors.ts'

/**
 * Refuses every method at and below /passkeys while they are disabled, before token and body are checked. Before the
 * handler of unknown paths, which would list the methods of a known one.
 */
export function refuseDisabledPasskeys(app: FastifyInstance, { passkeys }: { passkeys: { enabled: boolean } }): void {
  if (passkeys.enabled) return
  app.addHook('onRequest', async ({ url }) => {
    if (/^\/passkeys(?:[/?#]|$)/.test(url)) throw apiError('passkey_disabled')
  })
}

/** Refuses all paths of the scope while passkeys are disabled, before token and body are checked. */
export function requirePasskeys(app: FastifyInstance, { passkeys }: { passkeys: { enabled: boolean } }): void {
  if (passkeys.enabled) return
  app.addHook('onRequest', async () => {
    throw apiError('passkey_disabled')
  })
}
