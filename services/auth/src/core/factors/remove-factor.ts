import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { SECOND_METHODS, TRUSTED_DEVICE } from '../amr/second-methods.ts'
import { type NotifyDeps, notify } from '../outbox/notify.ts'
import { lowerSessions } from '../sessions/raise-session.store.ts'
import type { User } from '../users/users.store.ts'
import { deleteFactors, type Factor, listFactors } from './factors.store.ts'
import { deleteRecoveryCodes } from './recovery-codes.store.ts'

/**
 * Removes a factor, with the user locked, and lowers the sessions it raised. A proven one ends the trusted devices.
 * The last proven factor takes the recovery codes with it, and lowers all sessions but those that began at aal2.
 */
export async function removeFactor(
  deps: NotifyDeps,
  trx: Transaction<DB>,
  user: Pick<User, 'id' | 'email' | 'user_metadata'>,
  factor: Factor,
  acceptLanguage: string | undefined,
): Promise<void> {
  await deleteFactors(trx, user.id, [factor.id])
  if (factor.status !== 'verified') return
  const hasOther = (await listFactors(trx, user.id)).some(({ status }) => status === 'verified')
  if (!hasOther) await deleteRecoveryCodes(trx, user.id)
  const methods = [...Object.values(SECOND_METHODS), TRUSTED_DEVICE]
  await lowerSessions(trx, user.id, methods, hasOther ? factor.id : undefined)
  const details = { FactorType: factor.factor_type }
  await notify(deps, trx, user, 'mfa_factor_unenrolled_notification', details, { acceptLanguage })
}
