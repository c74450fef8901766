import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { AuditLog } from '../audit/audit.ts'
import { type Hooks, hookBehind, isRefusal } from '../hooks/hooks.ts'
import type { Asking, QuestionDeps } from '../hooks/questions.ts'
import type { AcceptDeps } from '../sessions/accepted-session.ts'
import { registeredBody } from '../sessions/user-answers.ts'
import { findUserByAddress, findUserById, type User } from '../users/users.store.ts'
import type { Account } from './new-account.ts'

export type AdmitDeps = AcceptDeps & QuestionDeps & { db: Kysely<DB> }

const POINT = 'before-user-created'

/** Asks the hook before-user-created about a user that is about to be inserted. Throws its refusal. */
export async function admitUser(deps: Asking<AdmitDeps>, trx: Transaction<DB>, user: User): Promise<void> {
  const { questions } = deps
  if (!questions?.has(POINT)) return
  const { id, aud, email, phone, role, is_anonymous, app_metadata, user_metadata } = user
  const key = JSON.stringify({ id, aud, email, phone, role, is_anonymous, app_metadata, user_metadata })
  await questions.ask(trx, POINT, key, await payloadOf(deps, trx, user))
}

/** Asks about the account of a sign-up, unless its address has one already; that may have to stay hidden. */
export async function admitAccount(
  deps: Asking<AdmitDeps>,
  trx: Transaction<DB>,
  { user, address }: Account,
  { hidesKnown }: { hidesKnown: boolean },
): Promise<void> {
  const { questions } = deps
  if (!questions?.has(POINT)) return
  if (!(await findUserByAddress(trx, address, user.aud))) await admitUser(deps, trx, user)
  else if (hidesKnown) await questions.hide(trx, POINT, await payloadOf(deps, trx, user))
}

/**
 * Asks outside of any transaction, for a request whose transaction runs later. Returns whether the hook has admitted
 * the account. One that gives no answer is asked again then: known and unknown addresses get the same answer.
 */
export async function admitLater(
  deps: AdmitDeps & { hooks: Hooks },
  log: AuditLog,
  { user, address }: Account,
): Promise<boolean> {
  const { hooks, db } = deps
  if (!hooks.has(POINT)) return false
  const payload = await payloadOf(deps, db, user)
  const isKnown = (await findUserByAddress(db, address, user.aud)) !== undefined
  try {
    if (isKnown) await hooks.hide(POINT, log, payload)
    else await hooks.ask(POINT, log, payload)
    return !isKnown
  } catch (error) {
    if (isRefusal(error) || !hookBehind(error)) throw error
    return false
  }
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

/** Takes the time of `announceUser`, for an address whose account must stay hidden. */
export function hideKnownUser({ questions, db }: Asking<AdmitDeps>, userId: string): void {
  if (questions?.has('after-user-created')) questions.hideTold('after-user-created', () => findUserById(db, userId))
}
