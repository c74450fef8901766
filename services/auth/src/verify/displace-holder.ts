import type { Transaction } from 'kysely'
import { type AuditLog, audit } from '../audit/audit.ts'
import type { DB } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import type { Address } from '../users/address.ts'
import { deleteUserRow } from '../users/change-user.store.ts'
import { refreshProviders } from '../users/metadata.store.ts'
import { dropAddress, lockUnprovenHolder } from '../users/unproven-holder.store.ts'
import type { User } from '../users/users.store.ts'

/**
 * Takes an address from an account that never proved it, for `owner`, who just did. As with a sign-up, whoever proves the
 * address has it, not whoever was first; an account that has nothing else goes with it.
 */
export async function displaceHolder(
  deps: Deps,
  trx: Transaction<DB>,
  log: AuditLog,
  owner: User,
  address: Address,
): Promise<void> {
  const holder = await lockUnprovenHolder(trx, { address, audience: owner.aud, exceptId: owner.id })
  if (!holder) return
  if (holder[address.channel === 'email' ? 'phone' : 'email']) {
    await dropAddress(trx, holder.id, address, deps.now())
    await refreshProviders(trx, holder.id, deps.now())
    await audit(deps, trx, log, { action: 'user_modified', actor: owner, target: holder })
  } else {
    await audit(deps, trx, log, { action: 'user_deleted', actor: owner, target: holder })
    await deleteUserRow(trx, holder.id)
  }
}
