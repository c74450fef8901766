// Checks that need no provider, apart from the verification in id-token.ts: they run before one is loaded or asked.
import { decodeJwt, decodeProtectedHeader, type JWTPayload } from 'jose'
import { apiError } from '../../errors.ts'
import { describeFailure } from './upstream.ts'

/** Asymmetric signatures only: with a shared secret every application that has it could forge tokens. */
export const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'],
  ...['EdDSA', 'Ed25519'],
]

/** Seconds by which a provider's clock may differ. */
export const CLOCK_TOLERANCE = 30

/** Reads unverified claims; throws for a token no key could make valid: malformed, expired, unknown algorithm. */
export function readUnverified(idToken: string, now: Date): JWTPayload {
  try {
    const { alg = '' } = decodeProtectedHeader(idToken)
    const claims = decodeJwt(idToken)
    const isLate = typeof claims.exp !== 'number' || claims.exp + CLOCK_TOLERANCE <= now.getTime() / 1000
    if (!ALGORITHMS.includes(alg) || isLate) throw new Error('unknown algorithm, or expired')
    return claims
  } catch (error) {
    throw badRequest('Bad ID token', undefined, error)
  }
}

/** OAuth clients read `error` and `error_description`. */
export const badRequest = (description: string, error = 'invalid request', cause?: unknown) =>
  apiError('validation_failed', {
    message: description,
    details: { error, error_description: description },
    ...(cause ? { cause: new Error(describeFailure(cause)) } : {}),
  })
