import { createHmac, type KeyObject } from 'node:crypto'
import { FACTOR_CODE_KIND } from '../outbox/outbox.ts'

/** Wrong tries at one code; five of a million. */
export const MAX_PHONE_ATTEMPTS = 5

/** Bound to its challenge: the code of one is worth nothing for another. */
export const hashPhoneCode = (codeKey: KeyObject, challengeId: string, code: string): Buffer =>
  createHmac('sha256', codeKey).update(`${FACTOR_CODE_KIND}\0${challengeId}\0${code}`).digest()
