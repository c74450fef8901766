import type { Config } from '../../config.ts'
import type { User } from '../users/users.store.ts'

/** Whether AUTH_MFA_REQUIRED_FOR makes the user have a second factor. Anonymous users cannot have one. */
export function isSecondFactorDemanded(
  { mfa, jwt }: Pick<Config, 'jwt' | 'mfa'>,
  { role, is_anonymous: isAnonymous }: Pick<User, 'role' | 'is_anonymous'>,
): boolean {
  if (isAnonymous || mfa.requiredFor === 'nobody') return false
  return mfa.requiredFor === 'everybody' || [...jwt.adminRoles, jwt.adminGroup].includes(role)
}
