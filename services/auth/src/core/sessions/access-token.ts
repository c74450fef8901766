import type { Aal, AmrEntry } from '../../db/tables.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'
import { provenUser } from '../users/proven-addresses.ts'
import type { User } from '../users/users.store.ts'

export interface AccessTokenDeps {
  keys: SigningKeys
  now: () => Date
  newId: () => string
  config: { jwt: { lifetimeSeconds: number; issuer: string } }
}

export interface TokenSession {
  id: string
  aal: Aal
  amr: AmrEntry[]
}

/** Claim of a token that our pages use, in this process alone. */
export const BY_PAGES = 'by_pages'

/** Returns the claims of a new access token. `amr` is newest first, and a random `jti` makes the token unique. */
export function accessTokenClaims(
  { now, newId, config: { jwt } }: Omit<AccessTokenDeps, 'keys'>,
  user: User,
  session: TokenSession,
) {
  const issuedAt = Math.floor(now().getTime() / 1000)
  const { email, phone, user_metadata } = provenUser(user)
  return {
    iss: jwt.issuer,
    sub: user.id,
    aud: user.aud,
    exp: issuedAt + jwt.lifetimeSeconds,
    iat: issuedAt,
    jti: newId(),
    email: email ?? '',
    phone: phone ?? '',
    app_metadata: user.app_metadata,
    user_metadata,
    role: user.role,
    aal: session.aal,
    amr: session.amr.toSorted((a, b) => b.timestamp - a.timestamp),
    session_id: session.id,
    is_anonymous: user.is_anonymous,
  }
}
