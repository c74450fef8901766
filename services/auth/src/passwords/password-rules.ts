/** Longest password accepted: argon2 takes any length, so this only bounds the work of one request (design.md 5.6). */
export const MAX_PASSWORD_BYTES = 1024

export type WeakPasswordReason = 'length' | 'characters' | 'pwned'

export interface PasswordRules {
  minLength: number
  requiredCharacters: readonly string[]
}

/** Which of today's rules a password breaks; empty when it is good. Length counts bytes, as the reference does. */
export function findWeaknesses(password: string, rules: PasswordRules): WeakPasswordReason[] {
  const reasons: WeakPasswordReason[] = []
  if (Buffer.byteLength(password) < rules.minLength) reasons.push('length')
  const misses = rules.requiredCharacters.some((set) => ![...set].some((character) => password.includes(character)))
  if (misses) reasons.push('characters')
  return reasons
}

/** Splits `abc:0123:!\:` into its sets; `\:` is a colon inside a set, empty sets are dropped. */
export function parseRequiredCharacters(text: string): string[] {
  return text
    .split(/(?<!\\):/)
    .map((set) => set.replaceAll('\\:', ':'))
    .filter(Boolean)
}
