import type { Kysely } from 'kysely'
import type { DB } from '../../../db/tables.ts'
import { noteChange } from '../../../db/watched-users.ts'
import { apiError } from '../../../errors.ts'
import { type Actor, type AuditDeps, type AuditLog, audit } from '../../audit/audit.ts'
import { lockUser } from '../../users/users.store.ts'
import { deleteGrant } from './grants.store.ts'

/**
 * Withdraws the consent of a user to a client, and ends the client's sessions of this user at once. Throws
 * oauth_consent_not_found.
 */
export async function endGrant(
  deps: AuditDeps & { db: Kysely<DB> },
  log: AuditLog,
  actor: Actor,
  { owner, clientId }: { owner: Pick<Actor, 'id' | 'email' | 'phone'>; clientId: string },
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    await lockUser(trx, owner.id)
    if (actor.id !== owner.id) await noteChange(trx, { userId: owner.id, sessionsEnd: 'ended_by_admin' })
    if (!(await deleteGrant(trx, { userId: owner.id, clientId }))) throw apiError('oauth_consent_not_found')
    const traits = { oauth_client_id: clientId, action: 'revoke_oauth_grant' }
    await audit(deps, trx, log, { action: 'token_revoked', actor, target: owner, traits })
  })
}
