import type { Transaction } from 'kysely'
import type { DB } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { findRecoveryCodes, replaceRecoveryCodes } from '../factors/recovery-codes.store.ts'
import { hashRecoveryCode, makeRecoveryCodes } from '../factors/recovery-codes.ts'
import type { User } from '../users/users.store.ts'

/** For a user who has none yet; undefined: they have, or there are to be none. */
export async function giveFirstRecoveryCodes(
  deps: Deps,
  trx: Transaction<DB>,
  user: Pick<User, 'id'>,
): Promise<string[] | undefined> {
  if (!deps.config.mfa.recoveryCodes || (await findRecoveryCodes(trx, user.id))) return undefined
  return (await giveRecoveryCodes(deps, trx, user)).codes
}

/** A new set, with the user locked; this is the only time that its codes can be read. */
async function giveRecoveryCodes(deps: Deps, trx: Transaction<DB>, user: Pick<User, 'id'>) {
  const id = deps.newId()
  const codes = makeRecoveryCodes(deps.random)
  const hashes = codes.map((code) => hashRecoveryCode(user.id, code))
  await replaceRecoveryCodes(trx, { id, userId: user.id, hashes, now: deps.now() })
  return { id, codes }
}
