import type { FastifyReply, FastifyRequest } from 'fastify'
import { decodeJwt } from 'jose'
import { renewBySignIn } from '../../core/sessions/end-session.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import type { Deps } from '../../deps.ts'
import type { openBrowserSessions } from './browser-session.ts'

/**
 * Takes the session of an API answer into a browser, and returns its level. Where no application gets its tokens, it
 * renews a session that the browser has of this user. Proofs then add no rows, and the application stays signed in.
 */
export async function takeSession(
  deps: Pick<Deps, 'config' | 'db' | 'now'>,
  sessions: ReturnType<typeof openBrowserSessions>,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  { access_token, user }: SessionBody,
  { isShared }: { isShared: boolean },
): Promise<string> {
  const { session_id: newerId, aal } = decodeJwt<{ session_id: string; aal: string }>(access_token)
  const named = sessions.named(request)
  const isOther = named?.userId === user.id && named.sessionId !== newerId
  const renewed = isOther && !isShared ? await renewBySignIn(deps, { ...named, newerId }) : undefined
  if (!renewed) sessions.begin(reply, { userId: user.id, sessionId: newerId })
  return renewed?.aal ?? aal
}
