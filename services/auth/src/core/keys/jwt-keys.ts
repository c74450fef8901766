import type { JWK } from 'jose'

/** Algorithms that keys may sign with; `keys generate` makes RS256 by default (specification, Authentication 5). */
export const SIGNING_ALGORITHMS = ['RS256', 'RS512', 'ES256', 'ES512', 'EdDSA', 'HS256'] as const
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number]

/** `iat`: seconds since 1970 when it was made, if it says so. */
export type JwtKey = JWK & { kid: string; alg: SigningAlgorithm; key_ops: string[]; iat?: unknown }

/** Parses JWT_KEYS: a JWK set or an array of JWKs. Errors name the broken rule, never the key. */
export function parseJwtKeys(text: string): JwtKey[] {
  const keys = readKeys(text)
  for (const key of keys) {
    if (!key.kid) throw new Error('must give every key a kid')
    if (!SIGNING_ALGORITHMS.includes(key.alg as SigningAlgorithm)) {
      throw new Error(`must give every key an alg out of ${SIGNING_ALGORITHMS.join(', ')}`)
    }
  }
  if (new Set(keys.map((key) => key.kid)).size < keys.length) throw new Error('must not hold two keys with one kid')
  const signers = keys.filter((key) => key.key_ops?.includes('sign'))
  if (signers.length !== 1) throw new Error('must hold exactly one key with "sign" in its key_ops')
  return keys as JwtKey[]
}

function readKeys(text: string): JWK[] {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new Error('must be JSON')
  }
  const keys = Array.isArray(json) ? json : (json as { keys?: unknown })?.keys
  if (!Array.isArray(keys) || keys.some((key) => typeof key !== 'object' || key === null)) {
    throw new Error('must be a JWK set or an array of JWKs')
  }
  return keys
}
