import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Hooks } from '../hooks/hooks.ts'
import type { Asking, QuestionDeps } from '../hooks/questions.ts'
import type { AcceptDeps } from '../sessions/accepted-session.ts'
import { registeredBody } from '../sessions/user-answers.ts'
import { findUserByAddress, findUserById, type User } from '../users/users.store.ts'
import type { Account } from './new-account.ts'

export type AdmitDeps = AcceptDeps & QuestionDeps & { db: Kysely<DB> }

/** Asks the hook before-user-created about a user that is about to be inserted. Throws its refusal. */
export async function admitUser(deps: Asking<AdmitDeps>, trx: Transaction<DB>, user: User): Promise<void> {
  const { questions } = deps
  if (!questions?.has('before-user-created')) return
  const { id, aud, email, phone, role, is_anonymous, app_metadata, user_metadata } = user
  const key = JSON.stringify({ id, aud, email, phone, role, is_anonymous, app_metadata, user_metadata })
  await questions.ask(trx, 'before-user-created', key, await payloadOf(deps, trx, user))
}

/** Asks about the account of a sign-up, unless its address has one already. */
export async function admitAccount(deps: Asking<AdmitDeps>, trx: Transaction<DB>, account: Account): Promise<void> {
  const { questions } = deps
  if (!questions?.has('before-user-created')) return
  const { user, address } = account
  if (await findUserByAddress(trx, address, user.aud)) questions.pretend('before-user-created')
  else await admitUser(deps, trx, user)
}

/** Asks outside of any transaction, for a request whose transaction runs later. Returns whether the hook was asked. */
export async function admitLater(
  deps: AdmitDeps & { hooks: Hooks },
  log: Parameters<Hooks['ask']>[1],
  { user, address }: Account,
): Promise<boolean> {
  const { hooks, db } = deps
  if (!hooks.has('before-user-created')) return false
  if (await findUserByAddress(db, address, user.aud)) {
    await hooks.waitAsLong('before-user-created')
    return false
  }
  await hooks.ask('before-user-created', log, await payloadOf(deps, db, user))
  return true
}

/** The identities do not exist yet. */
const payloadOf = async (deps: AcceptDeps, db: Kysely<DB>, user: User) => ({
  user: await registeredBody(deps, db, { ...user, identities: [] }),
})

/** Asks the hook after-user-created about an inserted user, once the transaction has committed. */
export function announceUser(deps: Asking<AdmitDeps>, userId: string): void {
  const { questions, db } = deps
  if (!questions?.has('after-user-created')) return
  questions.tell('after-user-created', async () => {
    const user = await findUserById(db, userId)
    return user && { user: await registeredBody(deps, db, user) }
  })
}
