import type { KeyObject } from 'node:crypto'
import type { Aal, AmrEntry } from '../../db/tables.ts'
import type { User } from '../users/users.store.ts'
import { type AccessTokenDeps, signAccessToken } from './access-token.ts'
import { formatRefreshToken } from './refresh-token.ts'
import { type SessionBody, toSessionBody } from './session-shape.ts'

export interface SessionDeps extends AccessTokenDeps {
  refreshTokenKey: KeyObject
}

/** What every sign-in, refresh and second factor answers: new tokens of a session, and whose it is. */
export async function answerSession(
  deps: SessionDeps,
  user: User,
  session: { id: string; aal: Aal; amr: AmrEntry[]; refresh_counter: number },
): Promise<SessionBody> {
  const accessToken = await signAccessToken(deps, user, session)
  const refreshToken = formatRefreshToken(deps.refreshTokenKey, {
    sessionId: session.id,
    counter: session.refresh_counter,
  })
  return toSessionBody(accessToken, refreshToken, deps.config.jwt.lifetimeSeconds, user)
}
