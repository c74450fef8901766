import type { FactorJson } from '../db/tables.ts'
import { apiError } from '../errors.ts'

/** Throws too_many_enrolled_mfa_factors for who has proven as many as they may. */
export function requireRoomToProve(
  limits: { maxVerified: number },
  factors: readonly Pick<FactorJson, 'status'>[],
): void {
  const verified = factors.filter(({ status }) => status === 'verified')
  if (verified.length >= limits.maxVerified) throw tooManyFactors()
}

export const tooManyFactors = () =>
  apiError('too_many_enrolled_mfa_factors', {
    message: 'Maximum number of verified factors reached, unenroll to continue',
  })
