import { createHash } from 'node:crypto'
import { calculateJwkThumbprint, EmbeddedJWK, type JWTPayload, jwtVerify } from 'jose'
import type { Kysely } from 'kysely'
import type { DB } from '../../../db/tables.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { SIGNING_ALGS } from '../client-keys.ts'
import { useProof } from './used-proofs.store.ts'

/** Greatest age of a proof, and difference between the clocks (RFC 9449, section 11.1). */
const CLOCK_SECONDS = 60

export interface ProofDeps {
  db: Kysely<DB>
  now: () => Date
}

/** Request that a proof belongs to. */
export interface ProvenRequest {
  method: string
  /** Address without a query. */
  address: string
  /** Token that the request presents; undefined at the token endpoint. */
  accessToken?: string
}

/**
 * Verifies a proof of possession (RFC 9449, section 4.3) and uses it up. Returns the thumbprint of its key. Throws
 * invalid_dpop_proof.
 */
export async function verifyProof({ db, now }: ProofDeps, proof: string, request: ProvenRequest): Promise<string> {
  const seconds = now().getTime() / 1000
  const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, {
    ...{ typ: 'dpop+jwt', algorithms: SIGNING_ALGS, requiredClaims: ['htm', 'htu', 'iat', 'jti'] },
    currentDate: now(),
  }).catch((cause: unknown) => {
    throw invalid('The DPoP proof is not valid', cause)
  })
  const { iat = 0, jti = '' } = payload
  if (!isOf(payload, request)) throw invalid('The DPoP proof is that of another request')
  if (Math.abs(seconds - iat) > CLOCK_SECONDS) throw invalid('The DPoP proof is not of this minute')
  const thumbprint = await calculateJwkThumbprint(protectedHeader.jwk ?? {})
  const isFirst = await useProof(db, ['dpop', thumbprint, jti], new Date((iat + CLOCK_SECONDS) * 1000))
  if (!isFirst) throw invalid('The DPoP proof was used before')
  return thumbprint
}

const invalid = (message: string, cause?: unknown) => oauthError('invalid_dpop_proof', { message, cause })

function isOf({ htm, htu, ath }: JWTPayload, { method, address, accessToken }: ProvenRequest): boolean {
  const isSameToken = accessToken === undefined || ath === hashOf(accessToken)
  return htm === method && typeof htu === 'string' && withoutQuery(htu) === withoutQuery(address) && isSameToken
}

const hashOf = (token: string): string => createHash('sha256').update(token).digest('base64url')

/** Address in the one spelling of URLs, without query and fragment. */
function withoutQuery(address: string): string | undefined {
  if (!URL.canParse(address)) return undefined
  const { origin, pathname } = new URL(address)
  return origin + pathname
}
