import type { Kysely } from 'kysely'
import type { DB } from '../db/tables.ts'
import { UUID } from '../db/uuid.ts'
import { apiError } from '../errors.ts'
import { isBelowUser } from '../factors/assurance.ts'
import { type Factor, findFactor } from '../factors/factors.store.ts'
import type { LiveCaller } from '../sessions/caller.ts'
import type { User } from '../users/users.store.ts'

/** The user's factor of the path. Throws validation_failed or mfa_factor_not_found, both 404. */
export async function requireFactor(db: Kysely<DB>, user: Pick<User, 'id'>, id: string): Promise<Factor> {
  if (!UUID.test(id)) throw apiError('validation_failed', { status: 404, message: 'factor_id must be an UUID' })
  const factor = await findFactor(db, user.id, id)
  if (!factor) throw apiError('mfa_factor_not_found')
  return factor
}

/**
 * Proving a factor for the first time is adding it: who has a proven one needs that first. Otherwise whoever knows the
 * password could prove one of their own, begun before the account's owner had any, and so be aal2.
 */
export function requireMayProve(
  user: Pick<User, 'factors'>,
  session: Pick<LiveCaller['session'], 'aal'>,
  factor: Pick<Factor, 'status'>,
): void {
  if (factor.status === 'verified' || !isBelowUser(user, session)) return
  throw apiError('insufficient_aal', { status: 403, message: 'AAL2 required to enroll a new factor' })
}
