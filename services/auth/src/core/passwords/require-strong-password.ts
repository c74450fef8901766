import { apiError } from '../../errors.ts'
import type { LeakedPasswords } from './leaked-passwords.ts'
import { findWeaknesses, MAX_PASSWORD_BYTES, type PasswordRules, type Weakness } from './password-rules.ts'

export interface PasswordRulesDeps {
  config: { passwords: PasswordRules; siteUrl: string }
  leakedPasswords: LeakedPasswords
}

/** Reasons that clients know (contract/auth-core.md 13); the message says more. */
type WeakPasswordReason = 'length' | 'characters' | 'pwned'

const reasonOf = (weakness: Weakness): WeakPasswordReason =>
  weakness === 'length' || weakness === 'characters' ? weakness : 'pwned'

const MESSAGES: Record<Weakness, (rules: PasswordRules) => string> = {
  length: (rules) => `Password should be at least ${rules.minLength} characters.`,
  characters: (rules) =>
    `Password should contain at least one character of each: ${rules.requiredCharacters.join(', ')}.`,
  common: () => 'Password is one of the most used ones and easy to guess, please choose another.',
  context: () => 'Password is a word of the email address or of the site and easy to guess, please choose another.',
  leaked: () => 'Password is known from a data leak and easy to guess, please choose another.',
}

/**
 * Throws validation_failed for an empty or oversized password, and weak_password with all reasons for one that breaks
 * the rules. Throws service_unavailable when a mandatory look-up of leaks fails. May take seconds: not inside a
 * transaction.
 */
export async function requireStrongPassword(
  { config, leakedPasswords }: PasswordRulesDeps,
  password: string,
  email: string | null | undefined,
): Promise<void> {
  if (password === '') throw apiError('validation_failed', { message: 'A valid password is required' })
  if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES) {
    throw apiError('validation_failed', { message: `Password cannot be longer than ${MAX_PASSWORD_BYTES} bytes` })
  }
  const weaknesses = findWeaknesses(password, config.passwords, { email, siteUrl: config.siteUrl })
  if (await leakedPasswords.isLeaked(password)) weaknesses.push('leaked')
  if (weaknesses.length === 0) return
  const { message, reasons } = describeWeaknesses(weaknesses, config.passwords)
  throw apiError('weak_password', { message, details: { weak_password: { reasons } } })
}

/** Describes the weaknesses of a password that has just signed in; undefined for a good one. */
export async function reportWeaknesses(
  { config, leakedPasswords }: PasswordRulesDeps,
  password: string,
  email: string | null | undefined,
): Promise<{ message: string; reasons: WeakPasswordReason[] } | undefined> {
  const weaknesses = findWeaknesses(password, config.passwords, { email, siteUrl: config.siteUrl })
  if (await leakedPasswords.isLeakedAtOnce(password)) weaknesses.push('leaked')
  return weaknesses.length === 0 ? undefined : describeWeaknesses(weaknesses, config.passwords)
}

const describeWeaknesses = (weaknesses: Weakness[], rules: PasswordRules) => ({
  message: weaknesses.map((weakness) => MESSAGES[weakness](rules)).join(' '),
  reasons: [...new Set(weaknesses.map(reasonOf))],
})
