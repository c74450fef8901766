import type { FactorStatus, ShownFactorType } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'

/** Throws too_many_enrolled_mfa_factors for a user with the maximum of verified factors. */
export function requireRoomToProve(
  limits: { maxVerified: number },
  factors: readonly { status: FactorStatus; factor_type: ShownFactorType }[],
): void {
  const verified = factors.filter(({ status, factor_type: type }) => status === 'verified' && type !== 'recovery_code')
  if (verified.length >= limits.maxVerified) throw tooManyFactors()
}

export const tooManyFactors = () =>
  apiError('too_many_enrolled_mfa_factors', {
    message: 'Maximum number of verified factors reached, unenroll to continue',
  })
