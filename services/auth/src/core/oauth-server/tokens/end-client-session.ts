import type { Kysely } from 'kysely'
import type { DB, OAuthClient } from '../../../db/tables.ts'
import { type AuditDeps, type AuditLog, audit } from '../../audit/audit.ts'
import { endSessionAndDevices } from '../../sessions/end-sessions.store.ts'
import type { SessionLimits } from '../../sessions/session-limits.ts'
import { findUserById, lockUser } from '../../users/users.store.ts'
import { findUserOfClientSession } from './client-sessions.store.ts'

/** Ends a session of this client; one that has ended, or that is another's, changes nothing. */
export async function endClientSession(
  deps: AuditDeps & { db: Kysely<DB>; config: { sessions: SessionLimits } },
  log: AuditLog,
  client: Pick<OAuthClient, 'id'>,
  id: string,
): Promise<void> {
  const userId = await findUserOfClientSession(deps.db, { id, clientId: client.id })
  if (!userId) return
  await deps.db.transaction().execute(async (trx) => {
    await lockUser(trx, userId)
    const actor = await findUserById(trx, userId)
    if (!actor || !(await endSessionAndDevices(trx, deps.config.sessions, userId, id))) return
    await audit(deps, trx, log, { action: 'logout', actor, traits: { session_id: id, client_id: client.id } })
  })
}
