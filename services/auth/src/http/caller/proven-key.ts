import { ApiError } from '@services/common/errors'
import type { FastifyRequest } from 'fastify'
import type { JWTPayload } from 'jose'
import type { Config } from '../../config.ts'
import { type ProofDeps, verifyProof } from '../../core/oauth-server/tokens/dpop-proof.ts'
import { apiError } from '../../errors.ts'

interface KeyDeps extends ProofDeps {
  config: Pick<Config, 'server'>
}

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

/**
 * Refuses a token that is bound to a key unless the request proves to have that key (RFC 9449, section 7.1). The token
 * may be stolen. It comes by the scheme `DPoP`, which takes no other tokens. Throws bad_jwt.
 */
export async function requireBoundKey(
  deps: KeyDeps,
  request: FastifyRequest,
  { cnf }: JWTPayload,
  token: string,
): Promise<void> {
  const { jkt } = (cnf ?? {}) as { jkt?: unknown }
  if (typeof jkt !== 'string') throw refused('This token is not bound to a key')
  const isByScheme = /^dpop /i.test(request.headers.authorization ?? '')
  const thumbprint = isByScheme ? await provenKey(deps, request, token).catch(refuse) : null
  if (thumbprint === null || thumbprint !== jkt) throw refused('This token is bound to a key')
}

function refuse(error: unknown): never {
  throw error instanceof ApiError ? refused(error.message) : error
}

const refused = (message: string) => apiError('bad_jwt', { status: 401, message })
