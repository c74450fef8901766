import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Asking } from '../hooks/questions.ts'
import { type ReleaseDeps, releaseAddress } from '../users/registrants.store.ts'
import { findUserByAddress, insertUser } from '../users/users.store.ts'
import { type AdmitDeps, admitAccount, announceUser } from './admit-user.ts'
import { insertIdentity } from './identities.store.ts'
import { type Account, refuseVanishedAccount } from './new-account.ts'

/**
 * Inserts an account and returns the id of the user with the address, new or not. A confirmed address is assumed. The
 * hook before-user-created may refuse it; `isAdmitted`: it was asked before.
 */
export async function insertAccount(
  deps: Asking<AdmitDeps & ReleaseDeps>,
  trx: Transaction<DB>,
  account: Account,
  { isAdmitted = false } = {},
): Promise<string> {
  const { user, address, passwordHash } = account
  await releaseAddress(deps, trx, address, user.aud)
  if (!isAdmitted) await admitAccount(deps, trx, account)
  const isAssumed = user[`${address.channel}_confirmed_at`] !== null
  if (!(await insertUser(trx, { ...user, password_hash: passwordHash, [`${address.channel}_assumed`]: isAssumed }))) {
    return (await findUserByAddress(trx, address, user.aud))?.id ?? refuseVanishedAccount()
  }
  for (const { id, provider, provider_id: providerId, identity_data: data } of user.identities) {
    await insertIdentity(trx, { id, userId: user.id, provider, providerId, data, now: deps.now() })
  }
  announceUser(deps, user.id)
  return user.id
}
