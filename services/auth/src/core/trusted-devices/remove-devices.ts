import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { UUID } from '../../db/uuid.ts'
import { apiError } from '../../errors.ts'
import { type Actor, type AuditDeps, type AuditLog, audit } from '../audit/audit.ts'
import { lockUser } from '../users/users.store.ts'
import { EVERY, only, withdrawDevices } from './trusted-devices.store.ts'

interface Removal {
  actor: Actor
  owner: Pick<Actor, 'id' | 'email' | 'phone'>
  /** undefined: all of the user's. */
  id?: string
}

/** Removes one or all trusted devices of a user, and the second factor of the sessions that they began. */
export async function removeDevices(
  deps: AuditDeps & { db: Kysely<DB> },
  log: AuditLog,
  { actor, owner, id }: Removal,
): Promise<void> {
  if (id !== undefined && !UUID.test(id)) throw apiError('trusted_device_not_found')
  await deps.db.transaction().execute(async (trx) => {
    await lockUser(trx, owner.id)
    const { length: devices } = await withdrawDevices(trx, owner.id, id === undefined ? EVERY : only(id))
    if (id !== undefined && devices === 0) throw apiError('trusted_device_not_found')
    if (devices === 0) return
    const traits = id === undefined ? { devices } : { device_id: id.toLowerCase() }
    await audit(deps, trx, log, { action: 'trusted_device_removed', actor, target: owner, traits })
  })
}
