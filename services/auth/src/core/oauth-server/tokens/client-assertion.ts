// Tokens of applications, and the proofs that applications present for them. The rule: a proof counts once, at all
// replicas. Endpoints: flows/oauth-server/token.
import { decodeJwt, jwtVerify } from 'jose'
import type { Kysely } from 'kysely'
import type { DB, OAuthClient } from '../../../db/tables.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { type ClientKeyDeps, clientKeys, SIGNING_ALGS } from '../client-keys.ts'
import { publicIdOf } from '../find-client.ts'
import { useProof } from './used-proofs.store.ts'

export const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** Longest life of an assertion: its id is kept as long. */
const MAX_LIFE_SECONDS = 300

/** Difference between the clocks of a client and of this service. */
const CLOCK_SECONDS = 30

export interface AssertionDeps extends ClientKeyDeps {
  db: Kysely<DB>
}

/** Reads the client that an assertion names, before it is verified. */
export function subjectOfAssertion(assertion: string): string | undefined {
  try {
    return decodeJwt(assertion).sub
  } catch {
    return undefined
  }
}

/**
 * Verifies an assertion of private_key_jwt (RFC 7523, section 3) and uses it up. Each audience must be one of
 * `audiences`: one that names another server as well could be presented there. Throws invalid_client.
 */
export async function verifyAssertion(
  deps: AssertionDeps,
  client: OAuthClient,
  assertion: string,
  audiences: readonly string[],
): Promise<void> {
  const now = deps.now()
  const { token_endpoint_auth_signing_alg: alg } = client
  const id = publicIdOf(client)
  const { payload } = await jwtVerify(assertion, clientKeys(deps, client), {
    algorithms: alg === null ? SIGNING_ALGS : [alg],
    ...{ issuer: id, subject: id, audience: [...audiences], requiredClaims: ['exp', 'jti'] },
    ...{ currentDate: now, clockTolerance: CLOCK_SECONDS },
  }).catch((cause: unknown) => {
    throw oauthError('invalid_client', { cause })
  })
  const { aud = [], exp = 0, jti = '' } = payload
  if (![aud].flat().every((each) => audiences.includes(each))) throw oauthError('invalid_client')
  const latest = now.getTime() / 1000 + MAX_LIFE_SECONDS + CLOCK_SECONDS
  if (exp > latest) throw oauthError('invalid_client', { message: 'The assertion must expire within 5 minutes' })
  const isFirst = await useProof(deps.db, ['assertion', client.id, jti], new Date((exp + CLOCK_SECONDS) * 1000))
  if (!isFirst) throw oauthError('invalid_client', { message: 'The assertion was used before' })
}
