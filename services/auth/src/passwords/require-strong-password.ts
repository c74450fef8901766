import { apiError } from '../errors.ts'
import { findWeaknesses, MAX_PASSWORD_BYTES, type PasswordRules, type WeakPasswordReason } from './password-rules.ts'

const WORDS: Record<WeakPasswordReason, (rules: PasswordRules) => string> = {
  length: (rules) => `Password should be at least ${rules.minLength} characters.`,
  characters: (rules) =>
    `Password should contain at least one character of each: ${rules.requiredCharacters.join(', ')}.`,
}

/** Throws validation_failed for none or an oversized one, weak_password with the reasons for one that breaks the rules. */
export async function requireStrongPassword(password: string, rules: PasswordRules): Promise<void> {
  if (password === '') throw apiError('validation_failed', { message: 'A valid password is required' })
  if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES) {
    throw apiError('validation_failed', { message: `Password cannot be longer than ${MAX_PASSWORD_BYTES} bytes` })
  }
  const reasons = findWeaknesses(password, rules)
  if (reasons.length === 0) return
  throw apiError('weak_password', {
    message: describeWeaknesses(reasons, rules),
    details: { weak_password: { reasons } },
  })
}

export const describeWeaknesses = (reasons: WeakPasswordReason[], rules: PasswordRules): string =>
  reasons.map((reason) => WORDS[reason](rules)).join(' ')
