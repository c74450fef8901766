import { isCommonPassword } from './common-passwords.ts'
import { isContextWord, type PasswordContext } from './context-words.ts'

/** Longest password accepted: argon2 takes any length, so this only bounds the work of one request (design.md 5.6). */
export const MAX_PASSWORD_BYTES = 1024

/** What may be wrong with a password: `common` and `context` are words that are guessed first, `leaked` is found by a look-up. */
export type Weakness = 'length' | 'characters' | 'common' | 'context' | 'leaked'

export interface PasswordRules {
  minLength: number
  requiredCharacters: readonly string[]
  /** Whether the most used passwords, and words of the user's address and of the site, are refused. */
  refusesGuessable: boolean
}

/** Which of today's rules a password breaks; empty when it is good. Length counts bytes, as the reference does. */
export function findWeaknesses(password: string, rules: PasswordRules, context: PasswordContext): Weakness[] {
  const weaknesses: Weakness[] = []
  if (Buffer.byteLength(password) < rules.minLength) weaknesses.push('length')
  const misses = rules.requiredCharacters.some((set) => ![...set].some((character) => password.includes(character)))
  if (misses) weaknesses.push('characters')
  if (rules.refusesGuessable && isCommonPassword(password)) weaknesses.push('common')
  if (rules.refusesGuessable && isContextWord(password, context)) weaknesses.push('context')
  return weaknesses
}

/** Splits `abc:0123:!\:` into its sets; `\:` is a colon inside a set, empty sets are dropped. */
export function parseRequiredCharacters(text: string): string[] {
  return text
    .split(/(?<!\\):/)
    .map((set) => set.replaceAll('\\:', ':'))
    .filter(Boolean)
}
