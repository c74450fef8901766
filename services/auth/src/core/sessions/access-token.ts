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

export interface SignedAccessToken {
  token: string
  /** Unix seconds. */
  expiresAt: number
}

/**
 * The token applications verify: `email` and `phone` are there once they are confirmed. `amr` is newest first; every token has
 * a random `jti`, so that no two are alike.
 */
export async function signAccessToken(
  { keys, now, newId, config: { jwt } }: AccessTokenDeps,
  user: User,
  session: { id: string; aal: Aal; amr: AmrEntry[] },
): Promise<SignedAccessToken> {
  const issuedAt = Math.floor(now().getTime() / 1000)
  const expiresAt = issuedAt + jwt.lifetimeSeconds
  const { email, phone, user_metadata } = provenUser(user)
  const token = await keys.sign({
    iss: jwt.issuer,
    sub: user.id,
    aud: user.aud,
    exp: expiresAt,
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
  })
  return { token, expiresAt }
}
