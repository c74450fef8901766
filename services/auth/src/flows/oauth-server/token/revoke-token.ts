import { type AuditLog, audit } from '../../../core/audit/audit.ts'
import { findUserOfClientSession } from '../../../core/oauth-server/tokens/client-sessions.store.ts'
import { endSessionAndDevices } from '../../../core/sessions/end-sessions.store.ts'
import { parseRefreshToken } from '../../../core/sessions/refresh-token.ts'
import { findUserById, lockUser } from '../../../core/users/users.store.ts'
import type { OAuthClient } from '../../../db/tables.ts'
import { UUID } from '../../../db/uuid.ts'
import type { Deps } from '../../../deps.ts'

/**
 * Ends the session of a refresh or access token (RFC 7009). A token of another client, or one that names no session,
 * changes nothing, without a word.
 */
export async function revokeToken(deps: Deps, log: AuditLog, client: OAuthClient, token: string): Promise<void> {
  const id = await sessionOf(deps, token)
  const userId = id && (await findUserOfClientSession(deps.db, { id, clientId: client.id }))
  if (!id || !userId) return
  await deps.db.transaction().execute(async (trx) => {
    await lockUser(trx, userId)
    const actor = await findUserById(trx, userId)
    if (!actor || !(await endSessionAndDevices(trx, deps.config.sessions, userId, id))) return
    await audit(deps, trx, log, { action: 'logout', actor, traits: { session_id: id, client_id: client.id } })
  })
}

async function sessionOf(deps: Deps, token: string): Promise<string | undefined> {
  const refreshToken = parseRefreshToken(deps.refreshTokenKey, token)
  if (refreshToken) return refreshToken.sessionId
  const { session_id: id } = (await deps.keys.verify(token, deps.now())) ?? {}
  return typeof id === 'string' && UUID.test(id) ? id : undefined
}
