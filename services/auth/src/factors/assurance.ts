// What a session may do once its user has a second factor. The one rule: whoever proved the first factor alone (aal1) may
// neither add, remove nor bypass a second one, nor change what the account is entered by.
import type { Aal, FactorJson } from '../db/tables.ts'

/** The methods that raise a session to aal2, as its `amr` names them. */
export const SECOND_METHODS = {
  totp: 'totp',
  phone: 'mfa/phone',
  webauthn: 'mfa/webauthn',
  recoveryCode: 'mfa/recovery_code',
} as const

export type SecondMethod = (typeof SECOND_METHODS)[keyof typeof SECOND_METHODS]

export const hasVerifiedFactor = ({ factors }: { factors: FactorJson[] | null }): boolean =>
  factors?.some(({ status }) => status === 'verified') ?? false

/** Whether the session has proven less than its user could: one that somebody stole, or whose password is known. */
export const isBelowUser = (user: { factors: FactorJson[] | null }, session: { aal: Aal }): boolean =>
  session.aal === 'aal1' && hasVerifiedFactor(user)
