import { createHash, createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { TokenPurpose } from '../../db/tables.ts'

/**
 * Links carry a random 256-bit token, of which only the SHA-256 is stored. The code typed by hand is short, so it is
 * stored as an HMAC under a server key (a stolen table does not give it away) and dies after five wrong attempts. Anybody can
 * make them, so after two codes that died of them the next ones are long enough to take any number.
 */
export interface OneTimeToken {
  linkToken: string
  code: string
}

export const MAX_ATTEMPTS = 5

/** Codes that die of wrong attempts, since the last one that was used, before the next ones are long. One: a slip of the owner would make a long code. */
export const MAX_USED_UP_CODES = 2

/**
 * Digits of a code that takes any number of wrong attempts: at a thousand guesses a second, day and night, one is right every
 * thirty years. Fewer would be guessed by a flood (ten digits: every four months); more are not typed.
 */
export const LONG_CODE_LENGTH = 12

/** Codes that died of wrong attempts since the last one that was used, counted no further than a rule asks for. */
export const countUsedUpCodes = (last?: { attempts: number; used_up_codes: number }): number =>
  Math.min((last?.used_up_codes ?? 0) + ((last?.attempts ?? 0) < MAX_ATTEMPTS ? 0 : 1), MAX_USED_UP_CODES)

export type RandomBytes = (size: number) => Buffer

export function makeOneTimeToken(random: RandomBytes, codeLength: number): OneTimeToken {
  return { linkToken: random(32).toString('base64url'), code: randomDigits(random, codeLength) }
}

/** Uniform decimal digits, zero-padded: bytes from 250 on are dropped, or low digits would be likelier. */
export function randomDigits(random: RandomBytes, length: number): string {
  let digits = ''
  while (digits.length < length) {
    for (const byte of random(length * 2)) {
      if (byte < 250 && digits.length < length) digits += byte % 10
    }
  }
  return digits
}

export const hashLinkToken = (linkToken: string): Buffer => createHash('sha256').update(linkToken).digest()

/** The code's hash is bound to its purpose and address: a code for one thing is worth nothing for another. */
export const hashCode = (key: KeyObject, purpose: TokenPurpose, relatesTo: string, code: string): Buffer =>
  createHmac('sha256', key).update(`${purpose}\0${relatesTo}\0${code}`).digest()

export const isSameHash = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b)
