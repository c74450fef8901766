import type { KeyObject } from 'node:crypto'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import { Type } from 'typebox'
import type { DB } from '../../db/tables.ts'
import { countLargeToken } from '../../metrics.ts'
import { type ClaimDeps, customClaims } from '../hooks/custom-claims.ts'
import type { Asking } from '../hooks/questions.ts'
import { UserShape } from '../users/user-shape.ts'
import type { User } from '../users/users.store.ts'
import type { AcceptDeps } from './accepted-session.ts'
import { type AccessTokenDeps, accessTokenClaims, type TokenSession } from './access-token.ts'
import { formatRefreshToken } from './refresh-token.ts'
import { ownBody } from './user-answers.ts'

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

export interface SessionDeps extends AccessTokenDeps {
  config: AccessTokenDeps['config'] & AcceptDeps['config'] & ClaimDeps['config']
  refreshTokenKey: KeyObject
  log: Pick<Logger, 'warn'>
}

/** Size that is worth a warning: by default nginx refuses headers past 8 KiB (large_client_header_buffers). */
const LARGE_TOKEN_BYTES = 4096

/**
 * Issues new tokens for a session. `method`: the proof, for the hook customize-access-token. The hook may refuse, so
 * changes by the proof are in the same transaction.
 */
export async function issueTokens(
  deps: Asking<SessionDeps>,
  db: Kysely<DB>,
  user: User,
  session: TokenSession & { refresh_counter: number },
  method: string,
): Promise<SessionBody> {
  const claims = await customClaims(deps, db, accessTokenClaims(deps, user, session), method)
  const refreshToken = { sessionId: session.id, counter: session.refresh_counter }
  const accessToken = await deps.keys.sign(claims)
  if (accessToken.length > LARGE_TOKEN_BYTES) {
    countLargeToken()
    deps.log.warn(
      { userId: user.id, bytes: accessToken.length },
      'access token too large for many proxies: its metadata',
    )
  }
  return {
    access_token: accessToken,
    token_type: 'bearer',
    expires_in: claims.exp - claims.iat,
    expires_at: claims.exp,
    refresh_token: formatRefreshToken(deps.refreshTokenKey, refreshToken),
    user: await ownBody(deps, db, user, session.id),
  }
}
