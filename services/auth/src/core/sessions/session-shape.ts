import { Type } from 'typebox'
import { toUserBody, UserShape } from '../users/user-shape.ts'
import type { User } from '../users/users.store.ts'
import type { SignedAccessToken } from './access-token.ts'

/** The answer of every sign-in and refresh. */
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

export function toSessionBody(
  accessToken: SignedAccessToken,
  refreshToken: string,
  lifetimeSeconds: number,
  user: User,
): SessionBody {
  return {
    access_token: accessToken.token,
    token_type: 'bearer',
    expires_in: lifetimeSeconds,
    expires_at: accessToken.expiresAt,
    refresh_token: refreshToken,
    user: toUserBody(user),
  }
}
