import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type Actor, type AuditDeps, type AuditEvent, type AuditLog, audit } from '../audit/audit.ts'
import type { Address } from './address.ts'
import { deleteUserRow } from './change-user.store.ts'
import { isBanned } from './is-banned.ts'
import { refreshProviders } from './metadata.store.ts'
import { otherChannel } from './proven-addresses.ts'
import { dropAddress, lockRegistrant, type Registrant } from './registrants.store.ts'
import type { User } from './users.store.ts'

/**
 * Frees an address that its holder never proved, for an owner who has (or whom an admin confirmed). Only an admin may
 * take it from a banned account that was in use.
 */
export async function displaceRegistrant(
  deps: AuditDeps,
  trx: Transaction<DB>,
  log: AuditLog,
  owner: User,
  address: Address,
  actor: Actor = owner,
): Promise<void> {
  const registrant = await lockRegistrant(trx, { address, audience: owner.aud, exceptId: owner.id })
  if (!registrant || (actor === owner && isBannedInUse(registrant, address.channel, deps.now()))) return
  const action = await displace(trx, registrant, address, deps.now())
  await audit(deps, trx, log, { action, actor, target: registrant })
}

/** Reports whether a ban extends to the address: a setting confirmed it, so its prover may be the banned user. */
export const isBannedInUse = (registrant: Registrant, channel: Address['channel'], now: Date): boolean =>
  isBanned(registrant, now) && registrant[`${channel}_confirmed_at`] !== null

/** Takes the address from a locked registrant. An account that was never used and has no other address is deleted. */
export async function displace(
  trx: Transaction<DB>,
  registrant: Pick<Registrant, 'id' | 'email' | 'phone' | 'last_sign_in_at'>,
  address: Address,
  now: Date,
): Promise<AuditEvent['action']> {
  if (registrant[otherChannel(address.channel)] || registrant.last_sign_in_at) {
    await dropAddress(trx, registrant.id, address, now)
    await refreshProviders(trx, registrant.id, now)
    return 'user_modified'
  }
  await deleteUserRow(trx, registrant.id)
  return 'user_deleted'
}
