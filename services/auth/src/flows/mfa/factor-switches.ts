import type { Config } from '../../config.ts'
import type { FactorType } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'

type MfaConfig = Pick<Config['mfa'], FactorType>

const NAMES: Record<FactorType, string> = { totp: 'TOTP', phone: 'Phone', webauthn: 'WebAuthn' }

export function requireEnrollEnabled(mfa: MfaConfig, type: FactorType): void {
  if (mfa[type].enroll) return
  throw apiError(`mfa_${type}_enroll_not_enabled`, { message: `MFA enroll is disabled for ${NAMES[type]}` })
}

export function requireVerifyEnabled(mfa: MfaConfig, type: FactorType): void {
  if (mfa[type].verify) return
  throw apiError(`mfa_${type}_verify_not_enabled`, { message: `MFA verification is disabled for ${NAMES[type]}` })
}
