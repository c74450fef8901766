import type { FastifyRequest } from 'fastify'
import { verifyProof } from '../../core/oauth-server/tokens/dpop-proof.ts'
import type { Deps } from '../../deps.ts'

type KeyDeps = Pick<Deps, 'db' | 'now'> & { config: Pick<Deps['config'], 'server'> }

/**
 * Returns the thumbprint of the key that a request proves to have by its `DPoP` header (RFC 9449); null without one.
 * `accessToken` is the token that it presents. Throws invalid_dpop_proof.
 */
export async function provenKey(deps: KeyDeps, request: FastifyRequest, accessToken?: string): Promise<string | null> {
  const { dpop: proof } = request.headers
  if (proof === undefined) return null
  const [path = ''] = request.url.split('?', 1)
  const address = deps.config.server.externalUrl + path
  const proven = { method: request.method, address, ...(accessToken !== undefined && { accessToken }) }
  // Two headers arrive as one, which is no proof.
  return verifyProof(deps, String(proof), proven)
}
