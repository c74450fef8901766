// Public keys of clients: rules of a set, and the set that verifies a client's assertions (private_key_jwt).
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import type { Egress } from '@services/common/egress/egress'
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import { describeFailure } from '../../adapters/oauth/upstream.ts'
import type { OAuthClient } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { fetchDocument } from './documents/fetch-document.ts'
import { SharedFetches } from './documents/shared-fetches.ts'

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

/** Lifetime of fetched keys: a key that a client withdraws is worth nothing after it. */
const KEPT_MS = 10 * 60_000

/** Shortest time between two fetches for an unknown key, which anyone can name. */
const PAUSE_MS = 30_000

/** Fetched keys by address, of one process. */
export type ClientKeySets = SharedFetches<JWTVerifyGetKey>

export const createClientKeySets = (): ClientKeySets => new SharedFetches(200)

export interface ClientKeyDeps {
  clientEgress: Pick<Egress, 'fetch'>
  now: () => Date
  clientKeySets: ClientKeySets
}

/**
 * Returns the keys of a client for jose's `jwtVerify`. The function throws jose's errors for an unknown key, and an
 * Error for keys that cannot be fetched.
 */
export function clientKeys(deps: ClientKeyDeps, client: Pick<OAuthClient, 'jwks' | 'jwks_uri'>): JWTVerifyGetKey {
  const { jwks, jwks_uri: address } = client
  if (address === null) return createLocalJWKSet((jwks ?? { keys: [] }) as unknown as JSONWebKeySet)
  return async (header, token) => {
    const fetched = keysAt(deps, address, KEPT_MS)
    const keys = await fetched
    try {
      return await keys(header, token)
    } catch (error) {
      // A client that has replaced its key.
      const renewed = error instanceof errors.JWKSNoMatchingKey ? keysAt(deps, address, PAUSE_MS) : fetched
      if (renewed === fetched) throw error
      return (await renewed)(header, token)
    }
  }
}

/** Returns keys of at most this age. */
const keysAt = ({ clientEgress, now, clientKeySets }: ClientKeyDeps, address: string, maxAgeMs: number) =>
  clientKeySets.get(address, { now: now(), maxAgeMs }, () => fetchKeys(clientEgress, address))

async function fetchKeys(egress: Pick<Egress, 'fetch'>, address: string): Promise<JWTVerifyGetKey> {
  try {
    const { json } = await fetchDocument(egress, address)
    requireKeys(json)
    return createLocalJWKSet(json as unknown as JSONWebKeySet)
  } catch (cause) {
    throw new Error(`keys of a client could not be fetched: ${describeFailure(cause)}`)
  }
}
