import type { KeyObject } from 'node:crypto'
import { Type } from 'typebox'
import type { Aal, AmrEntry } from '../../db/tables.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'
import { provenUser } from '../users/proven-addresses.ts'
import { toUserBody, UserShape } from '../users/user-shape.ts'
import type { User } from '../users/users.store.ts'
import { formatRefreshToken } from './refresh-token.ts'

/** The answer of every sign-in, refresh and second factor. */
export const SessionShape = Type.Object(
  {
    access_token: Type.String(),
    token_type: Type.Literal('bearer'),
    expires_in: Type.Integer({ description: 'Seconds.' }),
    expires_at: Type.Integer({ description: 'Unix seconds.' }),
    refresh_token: Type.String(),
    type: Type.Optional(Type.String({ description: 'Kind of confirmation; POST /verify only.' })),
    weak_password: Type.Optional(
      Type.Object(
        { message: Type.String(), reasons: Type.Array(Type.String()) },
        { description: 'Password sign-in only.' },
      ),
    ),
    provider_token: Type.Optional(Type.String({ description: 'Access token of the provider, after a sign-in there.' })),
    provider_refresh_token: Type.Optional(Type.String()),
    user: UserShape,
  },
  { title: 'Session' },
)

export type SessionBody = Type.Static<typeof SessionShape>

export interface SessionDeps {
  keys: SigningKeys
  refreshTokenKey: KeyObject
  now: () => Date
  newId: () => string
  config: { jwt: { lifetimeSeconds: number; issuer: string } }
}

/** Issues new tokens for a session. In the access token `amr` is newest first, and a random `jti` makes it unique. */
export async function issueTokens(
  { keys, refreshTokenKey, now, newId, config: { jwt } }: SessionDeps,
  user: User,
  session: { id: string; aal: Aal; amr: AmrEntry[]; refresh_counter: number },
): Promise<SessionBody> {
  const issuedAt = Math.floor(now().getTime() / 1000)
  const expiresAt = issuedAt + jwt.lifetimeSeconds
  const { email, phone, user_metadata } = provenUser(user)
  const accessToken = await keys.sign({
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
  return {
    access_token: accessToken,
    token_type: 'bearer',
    expires_in: jwt.lifetimeSeconds,
    expires_at: expiresAt,
    refresh_token: formatRefreshToken(refreshTokenKey, { sessionId: session.id, counter: session.refresh_counter }),
    user: toUserBody(user),
  }
}
