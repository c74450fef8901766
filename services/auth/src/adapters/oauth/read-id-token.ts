import { createHash } from 'node:crypto'
import { ApiError } from '@services/common/errors'
import { errors, type JWTPayload } from 'jose'
import { type CleanAccount, cleanAccount } from './clean-account.ts'
import type { EndpointsOf } from './endpoints.ts'
import { matchesAccessToken, type VerifyIdToken } from './id-token.ts'
import type { OAuth2Provider } from './provider.ts'
import { badRequest, readUnverified } from './readable-id-token.ts'

/** An id_token that an application got from the provider, and its companions. */
interface GivenIdToken {
  idToken: string
  accessToken: string | undefined
  /** Plain nonce; the token holds its SHA-256 in hex. */
  nonce: string | undefined
  now: Date
}

/** Returns undefined for providers without id_tokens. */
export function createIdTokenReader(
  provider: OAuth2Provider,
  { audiences, skipNonceCheck }: { audiences: readonly string[]; skipNonceCheck: boolean },
  endpointsOf: EndpointsOf,
  verifyIdToken: VerifyIdToken,
) {
  const { accountOfIdToken } = provider
  if (!accountOfIdToken) return undefined
  return {
    isIssuer: async (issuer: string) => (await endpointsOf()).idTokens?.isIssuer(issuer) ?? false,
    /** Verifies a token. Throws as contract/auth-external.md 2.7 says; bodies also have OAuth's form. */
    async read({ idToken, accessToken, nonce, now }: GivenIdToken): Promise<CleanAccount> {
      const { aud } = readUnverified(idToken, now)
      if (aud !== undefined && ![aud].flat().some((one) => audiences.includes(one))) throw forAnother(aud)
      const endpoints = await endpointsOf()
      if (!endpoints.idTokens) throw badRequest('Bad ID token')
      const claims = await verifyIdToken(idToken, { rules: endpoints.idTokens, audiences, now }).catch(explain)
      if (!claims.sub) throw badRequest('Missing sub claim in id_token')
      if (accessToken && !matchesAccessToken(idToken, claims, accessToken)) throw badRequest('Bad ID token')
      if (!skipNonceCheck) requireNonce(claims, nonce)
      try {
        return cleanAccount(accountOfIdToken(claims, endpoints), provider.reportTooLarge)
      } catch (error) {
        throw badRequest('Bad ID token', undefined, error)
      }
    },
  }
}

/** A stolen token is useless without the text that its nonce was made from. */
function requireNonce({ nonce: hashed }: JWTPayload, nonce: string | undefined): void {
  if (!hashed !== !nonce) {
    throw badRequest('Passed nonce and nonce in id_token should either both exist or not.')
  }
  if (nonce && createHash('sha256').update(nonce).digest('hex') !== hashed) {
    throw badRequest('Nonces mismatch', 'invalid nonce')
  }
}

function explain(error: unknown): never {
  if (error instanceof ApiError) throw error
  if (error instanceof errors.JWTClaimValidationFailed && error.claim === 'aud') {
    throw forAnother(error.payload.aud, error)
  }
  throw badRequest('Bad ID token', undefined, error)
}

function forAnother(audience: unknown, cause?: unknown) {
  const named = [audience].flat().slice(0, 5).join(' ').slice(0, 500)
  return badRequest(`Unacceptable audience in id_token: [${named}]`, undefined, cause)
}
