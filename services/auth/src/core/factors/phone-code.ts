import { createHmac, type KeyObject } from 'node:crypto'
import { FACTOR_CODE_KIND } from '../outbox/outbox.ts'

/** Wrong attempts at one code, of a million possible ones. */
export const MAX_PHONE_ATTEMPTS = 5

/** Hashes a code with its challenge: it is worth nothing for another. */
export const hashPhoneCode = (codeKey: KeyObject, challengeId: string, code: string): Buffer =>
  createHmac('sha256', codeKey).update(`${FACTOR_CODE_KIND}\0${challengeId}\0${code}`).digest()
