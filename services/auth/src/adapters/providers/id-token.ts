import { createHash } from 'node:crypto'
import {
  createRemoteJWKSet,
  customFetch,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose'
import { apiError } from '../../errors.ts'
import { readDescription } from './endpoints.ts'
import type { IdTokenRules } from './provider.ts'
import { ALGORITHMS, CLOCK_TOLERANCE } from './readable-id-token.ts'
import { boundedFetch, describeFailure } from './upstream.ts'

/** Signatures by the client's secret, of tokens that came straight from the token endpoint (OpenID Connect Core 3.1.3.7). */
const SECRET_ALGORITHMS = ['HS256', 'HS384', 'HS512']

const KEYS_WITHIN_MS = 5_000
/** A token of a key we do not know makes us look again, at most this often: keys rotate. */
const KEYS_COOLDOWN_MS = 1_000
const KEYS_KEPT_MS = 10 * 60 * 1000

/** What jose says of a token whose key is none of the provider's. */
const UNKNOWN_KEY = [errors.JWKSNoMatchingKey, errors.JWKSMultipleMatchingKeys, errors.JOSENotSupported]

export interface IdTokenExpectation {
  rules: IdTokenRules
  /** Ids by which the provider knows us; the token must be made for one of them. */
  audiences: readonly string[]
  /** The client's, where the provider itself answered the token: it may have signed with it. */
  secret?: string
  now: Date
}

export type VerifyIdToken = (idToken: string, expectation: IdTokenExpectation) => Promise<JWTPayload>

/**
 * Gives the claims of an id_token whose signature, issuer, audience and times are right (OpenID Connect Core 3.1.3.7), with
 * the providers' keys kept for a while. Throws what jose throws, and provider_unavailable where the keys cannot be had. Nonce
 * and at_hash are the caller's.
 */
export function createIdTokenVerifier(signInWithinMs: number): VerifyIdToken {
  const withinMs = Math.min(signInWithinMs, KEYS_WITHIN_MS)
  const keySets = new Map<string, JWTVerifyGetKey>()
  const keysOf = async ({ jwks }: IdTokenRules) => {
    const known = typeof jwks === 'string' ? jwks : jwks.discover
    const kept = keySets.get(known)
    if (kept) return kept
    const keys = remoteKeys(typeof jwks === 'string' ? jwks : await discoverKeys(jwks.discover, withinMs), withinMs)
    keySets.set(known, keys)
    return keys
  }
  /** Without the keys nobody can tell whether a token is good. */
  const keyOf =
    (rules: IdTokenRules, secret: string | undefined): JWTVerifyGetKey =>
    async (header, token) => {
      // Never a public key, whatever the token says: what anybody knows would sign.
      if (secret && SECRET_ALGORITHMS.includes(header.alg)) return Buffer.from(secret)
      try {
        const keys = await keysOf(rules)
        return await keys(header, token)
      } catch (cause) {
        if (UNKNOWN_KEY.some((known) => cause instanceof known)) throw cause
        throw apiError('provider_unavailable', {
          cause: new Error(describeFailure(cause)),
          retryAfterSeconds: 5,
        })
      }
    }
  return async (idToken, { rules, audiences, secret, now }) => {
    const { payload } = await jwtVerify(idToken, keyOf(rules, secret), {
      algorithms: secret ? [...ALGORITHMS, ...SECRET_ALGORITHMS] : ALGORITHMS,
      audience: [...audiences],
      clockTolerance: CLOCK_TOLERANCE,
      currentDate: now,
      requiredClaims: ['iss', 'aud', 'exp', 'iat'],
    })
    if (!rules.isIssuer(String(payload.iss))) throw new Error('the id_token is of another issuer')
    // A token for several is for the one it names as who asked for it (3.1.3.7, rules 3 to 5).
    if (Array.isArray(payload.aud) && payload.aud.length > 1 && !audiences.includes(String(payload.azp))) {
      throw new Error('the id_token was made for another client')
    }
    return payload
  }
}

async function discoverKeys(issuer: string, withinMs: number): Promise<string> {
  const { jwks_uri: url } = await readDescription(issuer, withinMs)
  if (!url) throw new Error('the description of the provider lacks its keys')
  return url
}

const remoteKeys = (url: string, withinMs: number): JWTVerifyGetKey =>
  createRemoteJWKSet(new URL(url), {
    cooldownDuration: KEYS_COOLDOWN_MS,
    cacheMaxAge: KEYS_KEPT_MS,
    [customFetch]: (address, init) => boundedFetch(withinMs)(address, init as RequestInit),
  })

/** Whether the token's at_hash, where it has one, belongs to the access token that came with it (3.1.3.8). */
export function matchesAccessToken(idToken: string, { at_hash: expected }: JWTPayload, accessToken: string): boolean {
  if (typeof expected !== 'string') return true
  const { alg = '' } = decodeProtectedHeader(idToken)
  // Not of Ed25519, which is no size of a hash.
  const bits = Number(/^[A-Z]{2}(\d{3})$/.exec(alg)?.[1] ?? 512)
  const hash = createHash(`sha${bits}`).update(accessToken).digest()
  return hash.subarray(0, bits / 16).toString('base64url') === expected
}
