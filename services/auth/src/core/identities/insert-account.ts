import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Asking } from '../hooks/questions.ts'
import { type ReleaseDeps, releaseAddress } from '../users/registrants.store.ts'
import { findUserByAddress, insertUser } from '../users/users.store.ts'
import { type AdmitDeps, admitAccount, announceUser, hideKnownUser } from './admit-user.ts'
import { insertIdentity } from './identities.store.ts'
import { type Account, refuseVanishedAccount } from './new-account.ts'

interface Admission {
  /** The hook before-user-created was asked before. */
  isAdmitted?: boolean
  /** Hooks must not reveal that the address has an account. */
  hidesKnown?: boolean
}

/**
 * Inserts an account and returns the id of the user with the address, new or not. A confirmed address is assumed. The
 * hook before-user-created may refuse it.
 */
export async function insertAccount(
  deps: Asking<AdmitDeps & ReleaseDeps>,
  trx: Transaction<DB>,
  account: Account,
  { isAdmitted = false, hidesKnown = false }: Admission = {},
): Promise<string> {
  const { user, address, passwordHash } = account
  await releaseAddress(deps, trx, address, user.aud)
  if (!isAdmitted) await admitAccount(deps, trx, account, { hidesKnown })
  const isAssumed = user[`${address.channel}_confirmed_at`] !== null
  if (!(await insertUser(trx, { ...user, password_hash: passwordHash, [`${address.channel}_assumed`]: isAssumed }))) {
    const known = (await findUserByAddress(trx, address, user.aud)) ?? refuseVanishedAccount()
    if (hidesKnown) hideKnownUser(deps, known.id)
    return known.id
  }
  for (const { id, provider, provider_id: providerId, identity_data: data } of user.identities) {
    await insertIdentity(trx, { id, userId: user.id, provider, providerId, data, now: deps.now() })
  }
  announceUser(deps, user.id)
  return user.id
}
