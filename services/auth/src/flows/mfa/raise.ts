import type { Transaction } from 'kysely'
import type { SecondMethod } from '../../core/factors/assurance.ts'
import { endLowerSessions, raiseSession } from '../../core/sessions/raise-session.store.ts'
import { findUserById } from '../../core/users/users.store.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

/** Raises the session to aal2, with user and session locked, and ends lower ones. The previous refresh token stops working. */
export async function raise(
  { now }: Pick<Deps, 'now'>,
  trx: Transaction<DB>,
  ids: { userId: string; sessionId: string; factorId: string | null },
  method: SecondMethod,
) {
  const session = await raiseSession(trx, { ...ids, method, now: now() })
  if (!session) throw apiError('session_not_found')
  await endLowerSessions(trx, ids.userId, session.id)
  const user = await findUserById(trx, ids.userId)
  if (!user) throw apiError('user_not_found')
  return { session, user }
}
