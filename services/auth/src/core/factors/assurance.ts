// Second factors in the words of a session. What a session without the second factor may not do: core/freshness/.
import type { FactorJson } from '../../db/tables.ts'

/** The methods that raise a session to aal2, as its `amr` names them. */
export const SECOND_METHODS = {
  totp: 'totp',
  phone: 'mfa/phone',
  webauthn: 'mfa/webauthn',
  recoveryCode: 'mfa/recovery_code',
} as const

export type SecondMethod = (typeof SECOND_METHODS)[keyof typeof SECOND_METHODS]

/** Recovery codes are none: they go with the last factor that they stand in for. */
export const hasVerifiedFactor = ({ factors }: { factors: FactorJson[] | null }): boolean =>
  factors?.some(({ status, factor_type: type }) => status === 'verified' && type !== 'recovery_code') ?? false
