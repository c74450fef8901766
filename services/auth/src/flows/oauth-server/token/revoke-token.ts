import type { AuditLog } from '../../../core/audit/audit.ts'
import { endClientSession } from '../../../core/oauth-server/tokens/end-client-session.ts'
import { parseRefreshToken } from '../../../core/sessions/refresh-token.ts'
import type { OAuthClient } from '../../../db/tables.ts'
import { UUID } from '../../../db/uuid.ts'
import type { Deps } from '../../../deps.ts'

/**
 * Ends the session of a refresh or access token (RFC 7009). A token of another client, or one that names no session,
 * changes nothing, without a word.
 */
export async function revokeToken(deps: Deps, log: AuditLog, client: OAuthClient, token: string): Promise<void> {
  const id = await sessionOf(deps, token)
  if (id) await endClientSession(deps, log, client, id)
}

async function sessionOf(deps: Deps, token: string): Promise<string | undefined> {
  const refreshToken = parseRefreshToken(deps.refreshTokenKey, token)
  if (refreshToken) return refreshToken.sessionId
  const { session_id: id } = (await deps.keys.verify(token, deps.now())) ?? {}
  return typeof id === 'string' && UUID.test(id) ? id : undefined
}
