import { createHash } from 'node:crypto'
import type { RandomBytes } from '../one-time-tokens/one-time-token.ts'

/** Enough for years of lost telephones, few enough to be written down. */
export const RECOVERY_CODES = 10

/** 80 bits: nobody tries them all, also not at a stolen table of their hashes. */
const CODE_CHARACTERS = 16

/** Base32 in lower case: 0, 1, 8 and 9, which are misread as letters, are in none. */
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

export const makeRecoveryCodes = (random: RandomBytes): string[] =>
  Array.from({ length: RECOVERY_CODES }, () =>
    Array.from(random(CODE_CHARACTERS), (byte) => ALPHABET[byte % ALPHABET.length]).join(''),
  )

/** Of a code as it was typed: case, spaces and dashes do not count. Bound to its user: equal codes have different hashes. */
export const hashRecoveryCode = (userId: string, code: string): Buffer =>
  createHash('sha256')
    .update(`recovery-code\0${userId}\0${code.toLowerCase().replaceAll(/[\s-]/g, '')}`)
    .digest()
