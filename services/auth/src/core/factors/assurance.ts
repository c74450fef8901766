import type { FactorJson } from '../../db/tables.ts'

/** Methods that raise a session to aal2, as its `amr` names them. Acts that need aal2: ../freshness/acts.ts. */
export const SECOND_METHODS = {
  totp: 'totp',
  phone: 'mfa/phone',
  webauthn: 'mfa/webauthn',
  recoveryCode: 'mfa/recovery_code',
} as const

export type SecondMethod = (typeof SECOND_METHODS)[keyof typeof SECOND_METHODS]

/** Recovery codes do not count: they are deleted with the last factor that they replace. */
export const hasVerifiedFactor = ({ factors }: { factors: FactorJson[] | null }): boolean =>
  factors?.some(({ status, factor_type: type }) => status === 'verified' && type !== 'recovery_code') ?? false
