import type { KeyObject } from 'node:crypto'
import { testCodeOf } from '../../adapters/test-codes.ts'
import type { Config } from '../../config.ts'
import type { TokenPurpose } from '../../db/tables.ts'
import type { Refund } from '../limits/limiter.ts'
import { hashCode, isSameHash } from './one-time-token.ts'

export interface RightCodeDeps {
  config: Pick<Config, 'mail' | 'sms'>
  limits: { fixedCodeGuessed(address: string): Promise<Refund | undefined> }
  codeKey: KeyObject
  now: () => Date
}

interface StoredCode {
  purpose: TokenPurpose
  relates_to: string
  code_hash: Buffer | null
  /** null: the fixed code of a test address. */
  code_seed: Buffer | null
}

/**
 * Compares a typed code after its attempt was counted. A fixed code ends with its setting. Each issue of it is the same
 * code with new attempts, so wrong guesses are counted by address too.
 */
export async function isRightCode(deps: RightCodeDeps, stored: StoredCode, typed: string): Promise<boolean> {
  const { config, limits, codeKey, now } = deps
  const { purpose, relates_to: address, code_hash: hash, code_seed: seed } = stored
  const isIt = (code: string) => hash !== null && isSameHash(hash, hashCode(codeKey, purpose, address, code))
  if (seed !== null) return isIt(typed)
  const listed = address.includes('@') ? config.mail.testAddresses : config.sms.testNumbers
  const fixed = testCodeOf(listed, address, now())
  if (fixed === undefined || !isIt(fixed)) return false
  const refund = await limits.fixedCodeGuessed(address)
  if (!refund || !isIt(typed)) return false
  await refund()
  return true
}
