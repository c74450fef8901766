import type { OAuthClient } from '../../../db/tables.ts'
import type { AccessTokenDeps, TokenSession } from '../../sessions/access-token.ts'
import type { User } from '../../users/users.store.ts'
import { publicIdOf } from '../find-client.ts'
import type { OAuthScope } from '../oauth-scopes.ts'
import { claimsOf } from '../scopes/claims-of.ts'

type ClaimDeps = Omit<AccessTokenDeps, 'keys'>

/** Rights of a token. */
export interface Grant {
  scopes: readonly string[]
  resources: readonly string[]
  /** Thumbprint of the key that the token is bound to (RFC 9449); null: none. */
  thumbprint: string | null
}

type NamedClient = Pick<OAuthClient, 'id' | 'metadata_uri'>

/**
 * Returns the claims of an access token of a client: those that its scopes open alone. Hooks want texts for address and
 * number, so these are empty without their scopes.
 */
export function clientClaims(
  deps: ClaimDeps,
  { user, session, client }: { user: User; session: TokenSession; client: NamedClient },
  grant: Grant,
  ownScopes: readonly OAuthScope[],
) {
  return {
    ...{ email: '', phone: '' },
    ...claimsOf(user, grant.scopes, ownScopes),
    ...tokenClaims(deps, client, grant, user.aud),
    sub: user.id,
    // The application acts for the user (RFC 8693, section 4.1). A machine, which acts for itself, has none.
    act: { sub: publicIdOf(client) },
    role: user.role,
    aal: session.aal,
    amr: session.amr,
    session_id: session.id,
    is_anonymous: user.is_anonymous,
  }
}

/** Returns the claims of a client's token for itself (client_credentials): without a user, and without a session. */
export const machineClaims = (deps: ClaimDeps, client: OAuthClient, grant: Grant, audience: string) => ({
  ...tokenClaims(deps, client, grant, audience),
  sub: publicIdOf(client),
  role: client.role,
})

function tokenClaims(
  { now, newId, config: { jwt } }: ClaimDeps,
  client: NamedClient,
  { scopes, resources, thumbprint }: Grant,
  audience: string,
) {
  const issuedAt = Math.floor(now().getTime() / 1000)
  const [aud = audience, ...others] = resources
  return {
    iss: jwt.issuer,
    aud: others.length > 0 ? [...resources] : aud,
    exp: issuedAt + jwt.lifetimeSeconds,
    iat: issuedAt,
    nbf: issuedAt,
    jti: newId(),
    client_id: publicIdOf(client),
    scope: scopes.join(' '),
    ...(thumbprint !== null && { cnf: { jkt: thumbprint } }),
  }
}
