import { apiError } from '../../errors.ts'
import type { LeakedPasswords } from './leaked-passwords.ts'
import { findWeaknesses, MAX_PASSWORD_BYTES, type PasswordRules, type Weakness } from './password-rules.ts'

export interface PasswordRulesDeps {
  config: { passwords: PasswordRules; siteUrl: string }
  leakedPasswords: LeakedPasswords
}

/** Reasons that clients know (contract/auth-core.md 13); the message says more. */
type WeakPasswordReason = 'length' | 'characters' | 'pwned'

const REASONS: Record<Weakness, WeakPasswordReason> = {
  length: 'length',
  characters: 'characters',
  common: 'pwned',
  context: 'pwned',
  leaked: 'pwned',
}

const WORDS: Record<Weakness, (rules: PasswordRules) => string> = {
  length: (rules) => `Password should be at least ${rules.minLength} characters.`,
  characters: (rules) =>
    `Password should contain at least one character of each: ${rules.requiredCharacters.join(', ')}.`,
  common: () => 'Password is one of the most used ones and easy to guess, please choose another.',
  context: () => 'Password is a word of the email address or of the site and easy to guess, please choose another.',
  leaked: () => 'Password is known from a data leak and easy to guess, please choose another.',
}

/**
 * Throws validation_failed for no password or an oversized one, weak_password with all reasons for one that breaks the
 * rules; service_unavailable where leaks must be looked up and cannot be. May take seconds: not inside a transaction.
 * `email`: the address of the account the password is for.
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

/** Describes what is weak about a password in use, to a caller who has just signed in with it; undefined when it is good. */
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
  message: weaknesses.map((weakness) => WORDS[weakness](rules)).join(' '),
  reasons: [...new Set(weaknesses.map((weakness) => REASONS[weakness]))],
})
