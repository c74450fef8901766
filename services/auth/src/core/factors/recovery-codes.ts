import { createHash } from 'node:crypto'
import type { RandomBytes } from '../one-time-tokens/one-time-token.ts'

/** Enough for years of lost phones, few enough to write down. */
export const RECOVERY_CODES = 10

/** 80 bits: too many to search, even with a stolen table of hashes. */
const CODE_CHARACTERS = 16

/** Base32 in lower case: without 0, 1, 8 and 9, which are misread as letters. */
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

export const makeRecoveryCodes = (random: RandomBytes): string[] =>
  Array.from({ length: RECOVERY_CODES }, () =>
    Array.from(random(CODE_CHARACTERS), (byte) => ALPHABET[byte % ALPHABET.length]).join(''),
  )

/** Hashes a code as typed, ignoring case, spaces and dashes, with its user: equal codes have different hashes. */
export const hashRecoveryCode = (userId: string, code: string): Buffer =>
  createHash('sha256')
    .update(`recovery-code\0${userId}\0${code.toLowerCase().replaceAll(/[\s-]/g, '')}`)
    .digest()
