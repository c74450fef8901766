// The first proof of an address that counted as confirmed by a setting. Its registrant may be a stranger, so the proof is no sign-in
// to what the registrant made. The rule: ../users/proven-addresses.ts.

import type { Transaction } from 'kysely'
import { type AuditLog, audit } from '../audit/audit.ts'
import type { DB } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { endEntries } from '../identities/end-entries.ts'
import { deleteIdentitiesExcept, putProvenIdentity } from '../identities/identities.store.ts'
import type { Address } from '../users/address.ts'
import { confirmAddress } from '../users/addresses.store.ts'
import { changeUser } from '../users/change-user.store.ts'
import { applyClaim } from '../users/claims.store.ts'
import { refreshProviders } from '../users/metadata.store.ts'
import { insertAccount, newAccount } from '../users/new-account.ts'
import { otherChannel } from '../users/proven-addresses.ts'
import { dropAddress } from '../users/unproven-holder.store.ts'
import { findUserById, type LockedUser, type User } from '../users/users.store.ts'

/**
 * Returns the id of the account that an assumed address opens once it is proven. An account without another proven address is
 * taken over: no way in of its registrant is left. One with another proven address stays its holder's, and the address leaves it
 * for a new account. Throws signup_disabled where that cannot be made.
 */
export async function takeOver(
  deps: Deps,
  trx: Transaction<DB>,
  log: AuditLog,
  holder: LockedUser,
  address: Address,
): Promise<string> {
  const other = otherChannel(address.channel)
  const isAnothers = holder[`${other}_confirmed_at`] && !holder[`${other}_assumed`]
  const userId = isAnothers ? await moveToNewAccount(deps, trx, log, holder, address) : holder.id
  if (!isAnothers) await stripAccount(trx, holder.id, address, deps.now())
  await confirmAddress(trx, userId, address.channel, deps.now())
  const identity = { id: deps.newId(), userId, provider: address.channel, address: address.value }
  await putProvenIdentity(trx, { ...identity, now: deps.now() })
  return userId
}

async function moveToNewAccount(
  deps: Deps,
  trx: Transaction<DB>,
  log: AuditLog,
  holder: LockedUser,
  address: Address,
): Promise<string> {
  if (deps.config.signup.disabled) throw apiError('signup_disabled')
  const before = (await findUserById(trx, holder.id)) as User
  await dropAddress(trx, holder.id, address, deps.now())
  await refreshProviders(trx, holder.id, deps.now())
  const account = newAccount(deps, { address, data: {}, audience: before.aud }, null)
  const { user } = account
  // Somebody else has taken the address in this very moment.
  if ((await insertAccount(deps, trx, account)) !== user.id) throw apiError('email_exists')
  await audit(deps, trx, log, { action: 'user_modified', actor: user, target: before })
  await audit(deps, trx, log, { action: 'user_signedup', actor: user, traits: { provider: address.channel } })
  return user.id
}

const NOTHING = { password_hash: null, data: {} }

/** Leaves an account nothing but the address that was proven. */
async function stripAccount(trx: Transaction<DB>, userId: string, proven: Address, now: Date): Promise<void> {
  const other = otherChannel(proven.channel)
  await deleteIdentitiesExcept(trx, userId, proven.channel)
  await endEntries(trx, userId)
  await applyClaim(trx, { id: userId, email: null, phone: null, [proven.channel]: proven.value }, NOTHING, now)
  await changeUser(trx, userId, { [other]: null, [`${other}_confirmed_at`]: null, [`${other}_assumed`]: false }, now)
}
