import { foldPassword } from './common-passwords.ts'

/** Words that a password must not be. */
export interface PasswordContext {
  email: string | null | undefined
  siteUrl: string
}

/** Shorter ones are parts of too many good passwords, and of no use to an attacker. */
const MIN_WORD_LENGTH = 4

/**
 * Whether a password is hardly more than a word an attacker tries first: the user's address, a part of it, its domain or a label of
 * the site's host name. Digits and punctuation at the ends do not count: `example2026!` is `example`.
 */
export function isContextWord(password: string, { email, siteUrl }: PasswordContext): boolean {
  const word = withoutEnds(foldPassword(password))
  return word.length >= MIN_WORD_LENGTH && wordsOf(email ?? '', new URL(siteUrl).hostname).includes(word)
}

function wordsOf(email: string, siteHost: string): string[] {
  const [local = '', domain = ''] = foldPassword(email).split('@')
  const names = local.split(/[^\p{L}\p{N}]+/u)
  const words = [`${local}@${domain}`, local, names.join(''), ...names]
  return [...words, ...[domain, siteHost].flatMap((host) => [host, ...host.split('.')])].map(withoutEnds)
}

/** From the first letter to the last one; takes a time proportional to the text. */
const withoutEnds = (text: string): string => /\p{L}(.*\p{L})?/su.exec(text)?.[0] ?? ''
