// Keys of access tokens; derive-key.ts has those of all other uses. A key serves one use, and a public key is never
// accepted as a secret.
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { ConfigError } from '@services/common/config/variables'
import {
  type CryptoKey,
  compactVerify,
  errors,
  importJWK,
  type JWTHeaderParameters,
  type JWTPayload,
  jwtVerify,
  SignJWT,
} from 'jose'
import type { JwtKey, SigningAlgorithm } from './jwt-keys.ts'

type VerifyingKey = { alg: SigningAlgorithm; key: CryptoKey | Uint8Array }

/** Keys that sign and verify access tokens, imported once at start. */
export interface SigningKeys {
  alg: SigningAlgorithm
  sign(claims: JWTPayload): Promise<string>
  /** Signs an id_token, whose type is `JWT` whatever that of access tokens is. */
  signIdToken(claims: JWTPayload & { at_hash: string }): Promise<string>
  /** Signs a logout token, whose type `verify` does not accept (OpenID Connect Back-Channel Logout 2.4). */
  signLogoutToken(claims: JWTPayload): Promise<string>
  /**
   * Returns the claims of a valid, unexpired access token, or undefined. A token without `exp` passes
   * (contract/auth-core.md 3.2).
   */
  verify(token: string, now: Date): Promise<JWTPayload | undefined>
  /** Returns the claims of an id_token, whose signature alone is verified: it may have expired. */
  readIdToken(token: string): Promise<JWTPayload | undefined>
  /** Public halves for /.well-known/jwks.json; symmetric keys are left out. */
  publicJwks: Record<string, unknown>[]
}

export interface KeyOptions {
  secret: string
  keys?: JwtKey[] | undefined
  type?: TokenType
}

/** Every verifier accepts `jwt`. `at+jwt` marks only access tokens (RFC 9068 2.1), and some verifiers refuse it. */
export type TokenType = 'jwt' | 'at+jwt'

/** Types accepted whatever is configured (RFC 7515 4.1.9): a token made by hand has any of them, or none. */
const ACCEPTED_TYPES: readonly unknown[] = [undefined, 'jwt', 'at+jwt', 'application/at+jwt']

/** Base64url without padding (RFC 7515 section 2): decoders accept it, but a token must have one spelling only. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** Verified tokens cached per process: a signature stays valid, so only the times are checked again. */
const MAX_CACHED = 5_000

/** Longest cached token, so that the cache takes 20 MB at most: with much metadata a token has 45 KiB. */
const MAX_CACHED_LENGTH = 4_096

/** Imports the keys, and signs and verifies once, so that a useless key fails the start. Throws a ConfigError. */
export async function importSigningKeys(options: KeyOptions): Promise<SigningKeys> {
  try {
    const keys = await importKeys(options)
    const now = new Date()
    if (!(await keys.verify(await keys.sign({ sub: 'start' }), now))) throw new Error('does not verify')
    return keys
  } catch (error) {
    throw new ConfigError(
      ['AUTH_JWT_KEYS holds a key that cannot sign or verify; each must be a whole private key'],
      error,
    )
  }
}

/**
 * Imports `keys`: the one with `sign` signs, all verify. Without a known `kid` a token is verified with the secret
 * (HS256 only), so that admin tokens made from it keep working. Without `keys` the secret signs HS256.
 */
async function importKeys(options: KeyOptions): Promise<SigningKeys> {
  const secret = new TextEncoder().encode(options.secret)
  const verifying = new Map<string, VerifyingKey>()
  for (const jwk of options.keys ?? []) {
    verifying.set(jwk.kid, { alg: jwk.alg, key: await importKey(jwk.kty === 'oct' ? jwk : publicHalf(jwk)) })
  }
  const signer = options.keys?.find((key) => key.key_ops.includes('sign'))
  const signingKey = signer && (await importKey(signer))
  const alg = signer?.alg ?? 'HS256'
  const headerOf = (typ: string) => ({ alg, typ, ...(signer ? { kid: signer.kid } : {}) })
  const header = headerOf(options.type === 'at+jwt' ? 'at+jwt' : 'JWT')
  const hmacKey = createSecretKey(secret)
  const encodedHeader = encoded(header)
  const cached = new Map<string, JWTPayload>()
  const algorithms = [...new Set(['HS256', ...[...verifying.values()].map((key) => key.alg)])]

  const keyOf = ({ kid, alg: tokenAlg }: JWTHeaderParameters) => {
    const known = kid === undefined ? undefined : verifying.get(kid)
    if (known && known.alg === tokenAlg) return known.key
    if (!known && tokenAlg === 'HS256') return secret
    throw new errors.JWKSNoMatchingKey()
  }

  const signWith = (claims: JWTPayload, typed: ReturnType<typeof headerOf>) =>
    new SignJWT(claims).setProtectedHeader(typed).sign(signingKey ?? hmacKey)

  return {
    alg,
    sign: signingKey
      ? (claims) => signWith(claims, header)
      : async (claims) => signHs256(encodedHeader, claims, hmacKey),
    signIdToken: (claims) => signWith(claims, headerOf('JWT')),
    signLogoutToken: (claims) => signWith(claims, headerOf('logout+jwt')),
    verify: async (token, now) => {
      const known = cached.get(token)
      if (known) return isInTime(known, now) ? known : undefined
      if (!COMPACT.test(token)) return undefined
      try {
        const { payload, protectedHeader } = await jwtVerify(token, keyOf, {
          algorithms,
          currentDate: now,
        })
        // Elsewhere the key may sign security events or request objects, which are no access tokens (RFC 8725 3.11).
        if (!ACCEPTED_TYPES.includes(protectedHeader.typ?.toLowerCase())) return undefined
        // An id_token, which an application shows to others: it opens nothing.
        if (payload.at_hash !== undefined) return undefined
        if (token.length > MAX_CACHED_LENGTH) return payload
        if (cached.size >= MAX_CACHED) cached.delete(cached.keys().next().value as string)
        cached.set(token, payload)
        return payload
      } catch (error) {
        if (error instanceof errors.JOSEError || error instanceof TypeError) return undefined
        throw error
      }
    },
    readIdToken: async (token) => {
      if (!COMPACT.test(token)) return undefined
      try {
        const { payload, protectedHeader } = await compactVerify(token, keyOf, { algorithms })
        const claims = JSON.parse(new TextDecoder().decode(payload)) as JWTPayload
        return protectedHeader.typ === 'JWT' && claims.at_hash !== undefined ? claims : undefined
      } catch (error) {
        if (error instanceof errors.JOSEError || error instanceof TypeError) return undefined
        throw error
      }
    },
    publicJwks: (options.keys ?? [])
      .filter((key) => key.kty !== 'oct')
      .map((key) => ({ ...publicHalf(key), use: 'sig', key_ops: ['verify'] })),
  }
}

const importKey = ({ key_ops: _ops, use: _use, ...jwk }: JwtKey) => importJWK(jwk, jwk.alg)

const isInTime = (claims: JWTPayload, now: Date) => {
  const seconds = now.getTime() / 1000
  return (claims.exp === undefined || claims.exp > seconds) && (claims.nbf === undefined || claims.nbf <= seconds)
}

/** Keeps the public members of RFC 7517/7518/8037: an allow list, so that a new private member cannot leak. */
function publicHalf(key: Partial<JwtKey>) {
  const { kty, kid, alg, n, e, crv, x, y } = key
  return Object.fromEntries(
    Object.entries({ kty, kid, alg, n, e, crv, x, y }).filter(([, value]) => value !== undefined),
  ) as unknown as JwtKey
}

const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')

/** Signs HS256 (RFC 7515 5.1) without WebCrypto, whose threads took a fifth of a refresh's CPU; 1 KB takes 5 µs. */
function signHs256(encodedHeader: string, claims: JWTPayload, key: KeyObject): string {
  const input = `${encodedHeader}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
  return `${input}.${createHmac('sha256', key).update(input).digest('base64url')}`
}
