// The first proof of an address that counted as confirmed by a setting, or whose account is banned. Its registrant may be a stranger,
// so the proof is no sign-in to what the registrant made. The rule: core/users/proven-addresses.ts.

import type { Transaction } from 'kysely'
import { type AuditLog, audit } from '../../core/audit/audit.ts'
import { endEntries } from '../../core/identities/end-entries.ts'
import { deleteIdentitiesExcept, putProvenIdentity } from '../../core/identities/identities.store.ts'
import { insertAccount, newAccount } from '../../core/identities/new-account.ts'
import type { Address } from '../../core/users/address.ts'
import { confirmAddress } from '../../core/users/addresses.store.ts'
import { changeUser, noAddress } from '../../core/users/change-user.store.ts'
import { applyClaim } from '../../core/users/claims.ts'
import { displace } from '../../core/users/displace-holder.ts'
import { isBanned } from '../../core/users/is-banned.ts'
import { otherChannel } from '../../core/users/proven-addresses.ts'
import { findUserById, type LockedUser, type User } from '../../core/users/users.store.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

/**
 * Returns the id of the account that an assumed address opens once it is proven. An account without another proven address is
 * taken over: no way in of its registrant is left. One with another proven address stays its holder's, one that is banned its
 * registrant's: the address leaves it for a new account. Throws signup_disabled where that cannot be made.
 */
export async function takeOver(
  deps: Deps,
  trx: Transaction<DB>,
  log: AuditLog,
  holder: LockedUser,
  address: Address,
): Promise<string> {
  const other = otherChannel(address.channel)
  const isAnothers = isBanned(holder, deps.now()) || (holder[`${other}_confirmed_at`] && !holder[`${other}_assumed`])
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
  const action = await displace(trx, before, address, deps.now())
  const account = newAccount(deps, { address, data: {}, audience: before.aud }, null)
  const { user } = account
  // Somebody else has taken the address in this very moment.
  if ((await insertAccount(deps, trx, account)) !== user.id) throw apiError('email_exists')
  await audit(deps, trx, log, { action, actor: user, target: before })
  await audit(deps, trx, log, { action: 'user_signedup', actor: user, traits: { provider: address.channel } })
  return user.id
}

const NOTHING = { password_hash: null, data: {} }

/** Leaves an account nothing but the address that was proven. */
async function stripAccount(trx: Transaction<DB>, userId: string, proven: Address, now: Date): Promise<void> {
  await deleteIdentitiesExcept(trx, userId, proven.channel)
  await endEntries(trx, userId)
  await applyClaim(trx, { id: userId, email: null, phone: null, [proven.channel]: proven.value }, NOTHING, now)
  await changeUser(trx, userId, noAddress(otherChannel(proven.channel)), now)
}
