import { apiError } from '../errors.ts'
import type { LeakedPasswords } from './leaked-passwords.ts'
import { findWeaknesses, MAX_PASSWORD_BYTES, type PasswordRules, type WeakPasswordReason } from './password-rules.ts'

export interface PasswordRulesDeps {
  config: { passwords: PasswordRules }
  leakedPasswords: LeakedPasswords
}

const WORDS: Record<WeakPasswordReason, (rules: PasswordRules) => string> = {
  length: (rules) => `Password should be at least ${rules.minLength} characters.`,
  characters: (rules) =>
    `Password should contain at least one character of each: ${rules.requiredCharacters.join(', ')}.`,
  pwned: () => 'Password is known from a data leak and easy to guess, please choose another.',
}

/**
 * Throws validation_failed for no password or an oversized one, weak_password with all reasons for one that breaks the
 * rules; service_unavailable where leaks must be looked up and cannot be. May take seconds: not inside a transaction.
 */
export async function requireStrongPassword(
  { config, leakedPasswords }: PasswordRulesDeps,
  password: string,
): Promise<void> {
  const rules = config.passwords
  if (password === '') throw apiError('validation_failed', { message: 'A valid password is required' })
  if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES) {
    throw apiError('validation_failed', { message: `Password cannot be longer than ${MAX_PASSWORD_BYTES} bytes` })
  }
  const reasons = findWeaknesses(password, rules)
  if (await leakedPasswords.isLeaked(password)) reasons.push('pwned')
  if (reasons.length === 0) return
  throw apiError('weak_password', {
    message: describeWeaknesses(reasons, rules),
    details: { weak_password: { reasons } },
  })
}

/** What is weak about a password in use, for who has just signed in with it; undefined when it is good. */
export async function reportWeaknesses(
  { config, leakedPasswords }: PasswordRulesDeps,
  password: string,
): Promise<{ message: string; reasons: WeakPasswordReason[] } | undefined> {
  const reasons = findWeaknesses(password, config.passwords)
  if (await leakedPasswords.isLeakedAtOnce(password)) reasons.push('pwned')
  return reasons.length === 0 ? undefined : { message: describeWeaknesses(reasons, config.passwords), reasons }
}

const describeWeaknesses = (reasons: WeakPasswordReason[], rules: PasswordRules): string =>
  reasons.map((reason) => WORDS[reason](rules)).join(' ')
