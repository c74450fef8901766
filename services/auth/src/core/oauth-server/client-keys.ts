import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { apiError } from '../../errors.ts'

/** Algorithms of private_key_jwt: asymmetric alone. */
export const SIGNING_ALGS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']

const MAX_KEYS = 10
const MAX_BYTES = 16 * 1024

/** Members of private and of symmetric keys (RFC 7518, section 6). */
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/** Throws validation_failed unless it is a set of public keys (RFC 7517) that can verify signatures. */
export function requireKeys(jwks: unknown): void {
  const keys = (jwks as { keys?: unknown } | undefined)?.keys
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > MAX_KEYS || JSON.stringify(jwks).length > MAX_BYTES) {
    throw invalid(`jwks must be an object with 1 to ${MAX_KEYS} keys and ${MAX_BYTES} bytes at most`)
  }
  for (const key of keys) {
    if (PRIVATE.some((name) => Object.hasOwn(Object(key), name))) throw invalid('jwks must hold public keys only')
    if (!isPublicKey(key)) throw invalid('jwks must hold public keys of RSA, of at least 2048 bits, EC or OKP')
  }
}

const invalid = (message: string) => apiError('validation_failed', { message })

function isPublicKey(key: JsonWebKey): boolean {
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey({ key, format: 'jwk' })
    return asymmetricKeyType !== 'rsa' || (asymmetricKeyDetails?.modulusLength ?? 0) >= 2048
  } catch {
    return false
  }
}
