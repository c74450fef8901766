// Rules that a new password must keep. The limits are today's, so a password in use may break them and still signs in
// (require-strong-password.ts reports it). Hashes: hash-password.ts, imported-hash.ts; leaks: leaked-passwords.ts.
import { readFileSync } from 'node:fs'

/** Longest password accepted: argon2 takes any length, so this only bounds the work of one request (design.md 5.6). */
export const MAX_PASSWORD_BYTES = 1024

/** `common` and `context` are words that attackers guess first; a look-up finds `leaked`. */
export type Weakness = 'length' | 'characters' | 'common' | 'context' | 'leaked'

export interface PasswordRules {
  minLength: number
  requiredCharacters: readonly string[]
  /** Whether the most used passwords, and words of the user's address and of the site, are refused. */
  refusesGuessable: boolean
}

interface PasswordContext {
  email: string | null | undefined
  siteUrl: string
}

/** Whether a password breaks a rule of its length or its characters, whatever it means. */
export const isMalformed = (password: string, rules: PasswordRules): boolean =>
  password === '' || Buffer.byteLength(password) > MAX_PASSWORD_BYTES || formWeaknesses(password, rules).length > 0

/** Length counts bytes, as the reference does. */
function formWeaknesses(password: string, rules: PasswordRules): Weakness[] {
  const weaknesses: Weakness[] = []
  if (Buffer.byteLength(password) < rules.minLength) weaknesses.push('length')
  const lacks = rules.requiredCharacters.some((set) => ![...set].some((character) => password.includes(character)))
  if (lacks) weaknesses.push('characters')
  return weaknesses
}

/** Lists the rules a password breaks. */
export function findWeaknesses(password: string, rules: PasswordRules, context: PasswordContext): Weakness[] {
  const weaknesses = formWeaknesses(password, rules)
  if (rules.refusesGuessable && isCommonPassword(password)) weaknesses.push('common')
  if (rules.refusesGuessable && isContextWord(password, context)) weaknesses.push('context')
  return weaknesses
}

const COMMON = new URL('common-passwords.txt', import.meta.url)
let common: ReadonlySet<string> | undefined

/** Read at the first password: an idle service does without the megabyte. */
function isCommonPassword(password: string): boolean {
  common ??= new Set(readFileSync(COMMON, 'utf8').split('\n').filter(isWord))
  return common.has(foldPassword(password))
}

const isWord = (line: string) => line !== '' && !line.startsWith('#')

/** Ignores letter case and width, to compare passwords with words; the password is hashed as typed. */
const foldPassword = (text: string): string => text.normalize('NFKC').toLowerCase()

/** Shorter words are parts of too many good passwords, and of no use to an attacker. */
const MIN_WORD_LENGTH = 4

/**
 * Whether a password is little more than a word that an attacker guesses first. Such words are the user's address, its
 * parts and domain, and the labels of the site's host name. Digits and punctuation at the ends do not count:
 * `example2026!` is `example`.
 */
function isContextWord(password: string, { email, siteUrl }: PasswordContext): boolean {
  const word = withoutEnds(foldPassword(password))
  return word.length >= MIN_WORD_LENGTH && wordsOf(email ?? '', new URL(siteUrl).hostname).includes(word)
}

function wordsOf(email: string, siteHost: string): string[] {
  const [local = '', domain = ''] = foldPassword(email).split('@')
  const names = local.split(/[^\p{L}\p{N}]+/u)
  const words = [`${local}@${domain}`, local, names.join(''), ...names]
  return [...words, ...[domain, siteHost].flatMap((host) => [host, ...host.split('.')])].map(withoutEnds)
}

/** Keeps the first letter to the last one, in linear time. */
const withoutEnds = (text: string): string => /\p{L}(.*\p{L})?/su.exec(text)?.[0] ?? ''

/** Splits `abc:0123:!\:` into its sets; `\:` is a colon inside a set, empty sets are dropped. */
export function parseRequiredCharacters(text: string): string[] {
  return text
    .split(/(?<!\\):/)
    .map((set) => set.replaceAll('\\:', ':'))
    .filter(Boolean)
}
