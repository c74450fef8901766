import type { RandomBytes } from '../../one-time-tokens/one-time-token.ts'

/** Consonants that are hard to confuse, so that no code is a word (RFC 8628, section 6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'
const LENGTH = 8

/** Bytes from here on would make the first letters more frequent. */
const FAIR = 256 - (256 % LETTERS.length)

/** Makes a code for people to type: 8 letters, 34 bits. */
export function newUserCode(random: RandomBytes): string {
  let code = ''
  while (code.length < LENGTH) {
    for (const byte of random(LENGTH)) if (byte < FAIR && code.length < LENGTH) code += LETTERS[byte % LETTERS.length]
  }
  return code
}

/** A code in two groups, as people see it. */
export const shownUserCode = (code: string): string => `${code.slice(0, LENGTH / 2)}-${code.slice(LENGTH / 2)}`

/** Reads a code as people type it: any case, with or without a hyphen; undefined for anything else. */
export function readUserCode(typed: string): string | undefined {
  const code = typed
    .slice(0, 100)
    .replaceAll(/[\s\-‐-―.]/g, '')
    .toUpperCase()
  return code.length === LENGTH && [...code].every((letter) => LETTERS.includes(letter)) ? code : undefined
}
