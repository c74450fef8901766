import { createHash } from 'node:crypto'
import type { OAuthClient } from '../../../db/tables.ts'
import type { SigningAlgorithm } from '../../keys/jwt-keys.ts'
import type { AccessTokenDeps, TokenSession } from '../../sessions/access-token.ts'
import type { User } from '../../users/users.store.ts'
import { publicIdOf } from '../find-client.ts'
import type { OAuthScope } from '../oauth-scopes.ts'
import { claimsOf } from '../scopes/claims-of.ts'

/** Clients read an id_token once, right after the sign-in that it names. */
const LIFE_SECONDS = 3600

export interface SignedIn {
  user: User
  session: TokenSession
  client: Pick<OAuthClient, 'id' | 'metadata_uri'>
  scopes: readonly string[]
  /** Newest proof of the session that approved. */
  authenticatedAt: Date
  nonce: string | null
}

/** Signs an id_token (OpenID Connect Core 2). Its `at_hash` distinguishes it from access tokens (signing-keys.ts). */
export function signIdToken(
  { keys, now, config: { jwt } }: AccessTokenDeps,
  { user, session, client, scopes, authenticatedAt, nonce }: SignedIn,
  accessToken: string,
  ownScopes: readonly OAuthScope[],
): Promise<string> {
  const issuedAt = Math.floor(now().getTime() / 1000)
  const id = publicIdOf(client)
  return keys.signIdToken({
    ...claimsOf(user, scopes, ownScopes),
    iss: jwt.issuer,
    sub: user.id,
    aud: [id],
    iat: issuedAt,
    exp: issuedAt + LIFE_SECONDS,
    auth_time: Math.floor(authenticatedAt.getTime() / 1000),
    ...(nonce !== null && { nonce }),
    acr: session.aal,
    amr: session.amr.map(({ method }) => method),
    sid: session.id,
    client_id: id,
    at_hash: halfHash(keys.alg, accessToken),
  })
}

/** Left half of the hash of the signature's algorithm, base64url (OpenID Connect Core 3.1.3.6). */
function halfHash(alg: SigningAlgorithm, token: string): string {
  const digest = createHash(alg.endsWith('256') ? 'sha256' : 'sha512')
    .update(token)
    .digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}
