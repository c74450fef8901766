// The first proof of an address that a setting confirmed, or whose account is banned. The registrant may be a stranger,
// so the proof does not sign in to the registrant's account as it is. The rule: ../../core/users/proven-addresses.ts.
import type { Transaction } from 'kysely'
import { type AuditLog, audit } from '../../core/audit/audit.ts'
import type { Asking } from '../../core/hooks/questions.ts'
import { deleteIdentitiesExcept, endEntries, putProvenIdentity } from '../../core/identities/identities.store.ts'
import { insertAccount } from '../../core/identities/insert-account.ts'
import { newAccount } from '../../core/identities/new-account.ts'
import type { Address } from '../../core/users/address.ts'
import { applyClaim } from '../../core/users/address-claims.ts'
import { confirmAddress } from '../../core/users/addresses.store.ts'
import { changeUser, noAddress } from '../../core/users/change-user.store.ts'
import { displace } from '../../core/users/displace-registrant.ts'
import { isBanned } from '../../core/users/is-banned.ts'
import { otherChannel } from '../../core/users/proven-addresses.ts'
import { findUserById, type LockedUser, type User } from '../../core/users/users.store.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

/**
 * Returns the id of the account that a newly proven address opens. An account without another proven address is taken
 * over: its registrant loses every way in. An account that is banned or has another proven address stays as it is, and
 * the address moves to a new account. Throws signup_disabled if none may be made.
 */
export async function takeOver(
  deps: Asking<Deps>,
  trx: Transaction<DB>,
  log: AuditLog,
  registrant: LockedUser,
  address: Address,
): Promise<string> {
  const other = otherChannel(address.channel)
  const isAnothers =
    isBanned(registrant, deps.now()) || (registrant[`${other}_confirmed_at`] && !registrant[`${other}_assumed`])
  const userId = isAnothers ? await moveToNewAccount(deps, trx, log, registrant, address) : registrant.id
  if (!isAnothers) await stripAccount(trx, registrant.id, address, deps.now())
  await confirmAddress(trx, userId, address.channel, deps.now())
  const identity = { id: deps.newId(), userId, provider: address.channel, address: address.value }
  await putProvenIdentity(trx, { ...identity, now: deps.now() })
  return userId
}

async function moveToNewAccount(
  deps: Asking<Deps>,
  trx: Transaction<DB>,
  log: AuditLog,
  registrant: LockedUser,
  address: Address,
) {
  if (deps.config.signup.disabled) throw apiError('signup_disabled')
  const before = (await findUserById(trx, registrant.id)) as User
  const action = await displace(trx, before, address, deps.now())
  const account = newAccount(deps, { address, data: {}, audience: before.aud }, null)
  const { user } = account
  // Taken by another request meanwhile.
  if ((await insertAccount(deps, trx, account)) !== user.id) throw apiError('email_exists')
  await audit(deps, trx, log, { action, actor: user, target: before })
  await audit(deps, trx, log, { action: 'user_signedup', actor: user, traits: { provider: address.channel } })
  return user.id
}

const NOTHING = { password_hash: null, data: {} }

async function stripAccount(trx: Transaction<DB>, userId: string, proven: Address, now: Date): Promise<void> {
  await deleteIdentitiesExcept(trx, userId, proven.channel)
  await endEntries(trx, userId)
  await applyClaim(trx, { id: userId, email: null, phone: null, [proven.channel]: proven.value }, NOTHING, now)
  await changeUser(trx, userId, noAddress(otherChannel(proven.channel)), now)
}
