// Apart from what verifies a token: it is asked before any provider is, and needs nothing that speaks to one.
import { decodeJwt, decodeProtectedHeader, type JWTPayload } from 'jose'
import { apiError } from '../../errors.ts'
import { describeFailure } from './upstream.ts'

/** Signatures that need a private key: with a shared secret every application that has it could make tokens. */
export const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'],
  ...['EdDSA', 'Ed25519'],
]

/** Seconds a provider's clock and ours may be apart. */
export const CLOCK_TOLERANCE = 30

/**
 * The claims of a token that could be good, not verified. Throws for one that is bad whatever the provider's keys are: no JWT,
 * signed as none is, expired. The provider, which may be away, has not to be asked for that.
 */
export function readUnverified(idToken: string, now: Date): JWTPayload {
  try {
    const { alg = '' } = decodeProtectedHeader(idToken)
    const claims = decodeJwt(idToken)
    const isLate = typeof claims.exp !== 'number' || claims.exp + CLOCK_TOLERANCE <= now.getTime() / 1000
    if (!ALGORITHMS.includes(alg) || isLate) throw new Error('an unknown signature, or expired')
    return claims
  } catch (error) {
    throw badRequest('Bad ID token', undefined, error)
  }
}

/** Clients of OAuth look for `error` and `error_description`. */
export const badRequest = (description: string, error = 'invalid request', cause?: unknown) =>
  apiError('validation_failed', {
    message: description,
    details: { error, error_description: description },
    ...(cause ? { cause: new Error(describeFailure(cause)) } : {}),
  })
