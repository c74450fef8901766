import type { Kysely } from 'kysely'
import type { Config } from '../../config.ts'
import type { RefusalLog } from '../../core/audit/sign-in-attempt.ts'
import { type Factor, findFactor } from '../../core/factors/factors.store.ts'
import type { ActName } from '../../core/freshness/acts.ts'
import { type GivenProof, requireSecondFactor } from '../../core/freshness/require-fresh.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import type { User } from '../../core/users/users.store.ts'
import type { Aal, AmrEntry, DB, FactorType } from '../../db/tables.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

/** Request of a user about their own factors. */
export interface FactorRequest {
  log: RefusalLog
  caller: LiveCaller
  proof: GivenProof
}

/** Finds the user's factor of the path. Throws validation_failed or mfa_factor_not_found, both 404. */
export async function requireFactor(db: Kysely<DB>, user: Pick<User, 'id'>, id: string): Promise<Factor> {
  if (!UUID.test(id)) throw apiError('validation_failed', { status: 404, message: 'factor_id must be an UUID' })
  const factor = await findFactor(db, user.id, id)
  if (!factor) throw apiError('mfa_factor_not_found')
  return factor
}

const NAMES: Record<FactorType, string> = { totp: 'TOTP', phone: 'Phone', webauthn: 'WebAuthn' }

export function requireEnabled(mfa: Pick<Config['mfa'], FactorType>, type: FactorType, act: 'enroll' | 'verify'): void {
  if (mfa[type][act]) return
  const disabled = act === 'enroll' ? 'enroll' : 'verification'
  throw apiError(`mfa_${type}_${act}_not_enabled`, { message: `MFA ${disabled} is disabled for ${NAMES[type]}` })
}

/** Requires aal2 for a further factor's first proof: a thief with the password may have enrolled before the owner. */
export function requireMayProve(
  deps: Deps,
  user: User,
  session: { aal: Aal; amr: readonly AmrEntry[] },
  factor: Factor,
): void {
  requireSecondFactor(deps, actsOfProof(factor), user, session)
}

/** The first proof adds the factor to the account; later ones add nothing. */
export const actsOfProof = ({ status }: Pick<Factor, 'status'>): ActName[] =>
  status === 'verified' ? [] : ['proving a factor for the first time']

export function requireCapacity({ mfa }: Pick<Config, 'mfa'>, factors: NonNullable<User['factors']> | Factor[]): void {
  const verified = factors.filter(({ status, factor_type: type }) => status === 'verified' && type !== 'recovery_code')
  if (verified.length >= mfa.maxVerified) throw tooManyFactors()
}

export const tooManyFactors = () =>
  apiError('too_many_enrolled_mfa_factors', {
    message: 'Maximum number of verified factors reached, unenroll to continue',
  })
