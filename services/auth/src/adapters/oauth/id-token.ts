import { createHash, createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
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
import { boundedFetch, describeFailure, type OpenFetch, type UpstreamFetch } from './upstream.ts'

/** HMAC by the client's secret, for tokens straight from the token endpoint (OpenID Connect Core 3.1.3.7). */
const SECRET_ALGORITHMS = ['HS256', 'HS384', 'HS512']

const KEYS_WITHIN_MS = 5_000
/** An unknown key makes us fetch the keys again, at most this often: keys rotate. The token waits for the next time. */
const KEYS_COOLDOWN_MS = 1_000
const COOLDOWN_STEP_MS = 50
const KEYS_KEPT_MS = 10 * 60 * 1000

/** jose's errors for a token whose key is not the provider's. */
const UNKNOWN_KEY = [errors.JWKSNoMatchingKey, errors.JWKSMultipleMatchingKeys, errors.JOSENotSupported]

export interface IdTokenExpectation {
  rules: IdTokenRules
  /** Our ids at the provider; the token must be issued to one of them. */
  audiences: readonly string[]
  /** Secret of the client, if the token came from the provider itself, which may sign with it. */
  secret?: string
  now: Date
}

export type VerifyIdToken = (idToken: string, expectation: IdTokenExpectation) => Promise<JWTPayload>

/**
 * Verifies signature, issuer, audience and times of an id_token (OpenID Connect Core 3.1.3.7); the caller checks nonce
 * and at_hash. Throws jose's errors, or provider_unavailable if the keys cannot be fetched.
 */
export function createIdTokenVerifier(signInWithinMs: number, openFetch: OpenFetch = boundedFetch): VerifyIdToken {
  const withinMs = Math.min(signInWithinMs, KEYS_WITHIN_MS)
  const keySets = new Map<string, JWTVerifyGetKey>()
  const keysOf = async ({ jwks }: IdTokenRules) => {
    const known = typeof jwks === 'string' ? jwks : jwks.discover
    const kept = keySets.get(known)
    if (kept) return kept
    const address = typeof jwks === 'string' ? jwks : await discoverKeys(jwks.discover, withinMs)
    const keys = remoteKeys(address, () => openFetch(withinMs))
    keySets.set(known, keys)
    return keys
  }
  const keyOf =
    (rules: IdTokenRules, secret: string | undefined): JWTVerifyGetKey =>
    async (header, token) => {
      // Only the secret, never a public key, which an attacker knows too.
      if (secret && SECRET_ALGORITHMS.includes(header.alg)) return Buffer.from(secret)
      try {
        const keys = await keysOf(rules)
        return await keys(header, token)
      } catch (cause) {
        if (UNKNOWN_KEY.some((known) => cause instanceof known)) throw cause
        throw apiError('provider_unavailable', { cause: new Error(describeFailure(cause)), retryAfterSeconds: 5 })
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
    if (!rules.isIssuer(String(payload.iss))) throw new Error('the id_token has another issuer')
    // A token with several audiences is meant for its `azp` (3.1.3.7, rules 3 to 5).
    if (Array.isArray(payload.aud) && payload.aud.length > 1 && !audiences.includes(String(payload.azp))) {
      throw new Error('the id_token was made for another client')
    }
    return payload
  }
}

async function discoverKeys(issuer: string, withinMs: number): Promise<string> {
  const { jwks_uri: url } = await readDescription(issuer, withinMs)
  if (!url) throw new Error('the provider description lacks jwks_uri')
  return url
}

function remoteKeys(url: string, open: () => UpstreamFetch): JWTVerifyGetKey {
  const keys = createRemoteJWKSet(new URL(url), {
    cooldownDuration: KEYS_COOLDOWN_MS,
    cacheMaxAge: KEYS_KEPT_MS,
    [customFetch]: (address, init) => open()(address, init as RequestInit),
  })
  return async (header, token) => {
    // An unknown key is looked for at once, except in the pause after the keys were fetched.
    const isPaused = keys.coolingDown
    try {
      return await keys(header, token)
    } catch (cause) {
      if (!isPaused || !(cause instanceof errors.JWKSNoMatchingKey)) throw cause
    }
    for (let waited = 0; keys.coolingDown && waited < KEYS_COOLDOWN_MS; waited += COOLDOWN_STEP_MS) {
      await sleep(COOLDOWN_STEP_MS)
    }
    return keys(header, token)
  }
}

/** Reports whether a token is signed by an HMAC whose key is not the one that it was checked with. */
export const isSignedByOtherSecret = (idToken: string, error: unknown): boolean =>
  error instanceof errors.JWSSignatureVerificationFailed && hashOf(idToken) !== undefined

/** Replaces the HMAC of a token by one of ours, so that all other checks run as usual. */
export function resigned(idToken: string, secret: string): string {
  const [header = '', claims = ''] = idToken.split('.')
  const mac = createHmac(hashOf(idToken) ?? '', secret)
    .update(`${header}.${claims}`)
    .digest('base64url')
  return `${header}.${claims}.${mac}`
}

function hashOf(idToken: string): string | undefined {
  const { alg = '' } = decodeProtectedHeader(idToken)
  return SECRET_ALGORITHMS.includes(alg) ? `sha${alg.slice(2)}` : undefined
}

/** Whether the token's at_hash, if any, matches the access token that came with it (3.1.3.8). */
export function matchesAccessToken(idToken: string, { at_hash: expected }: JWTPayload, accessToken: string): boolean {
  if (typeof expected !== 'string') return true
  const { alg = '' } = decodeProtectedHeader(idToken)
  // Ed25519 names no hash size.
  const bits = Number(/^[A-Z]{2}(\d{3})$/.exec(alg)?.[1] ?? 512)
  const hash = createHash(`sha${bits}`).update(accessToken).digest()
  return hash.subarray(0, bits / 16).toString('base64url') === expected
}
