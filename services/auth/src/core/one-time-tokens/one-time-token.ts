// Tokens of mail links and codes typed by hand. Only hashes are stored, and a short code dies after five wrong
// attempts. The two tables: one-time-tokens.store.ts and earlier-links.store.ts (links that were replaced and stay
// valid). Tests: one-time-token.test.ts, flows/verify/verify.test.ts, test/takeover.test.ts.
import { createHash, createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Transaction } from 'kysely'
import { writeDecoys } from '../../db/decoy-rows.store.ts'
import type { DB, TokenPurpose } from '../../db/tables.ts'
import { NIL_UUID } from '../../db/uuid.ts'
import type { Encryption } from '../keys/encryption.ts'
import { SEALED } from '../keys/sealed-columns.ts'
import { findLastCode, MAX_ATTEMPTS, type NewOneTimeToken, putOneTimeToken } from './one-time-tokens.store.ts'
import { typedCode } from './typed-code.ts'

/**
 * Links carry a random 256-bit token, of which only the SHA-256 is stored. A code is short, so it is stored as an HMAC
 * under a server key (a stolen table does not give it away). Strangers can use up a user's codes, so after two used-up
 * ones the next codes are long enough to take any number of attempts.
 */
export interface OneTimeToken {
  linkToken: string
  code: string
}

/** Used-up codes in a row after which the next ones are long. A single one may be an owner's typing errors. */
const MAX_USED_UP_CODES = 2

/**
 * Digits of a code that takes any number of wrong attempts. At a thousand guesses a second, day and night, one is right
 * every thirty years. Ten digits would be guessed every four months; more than twelve are too many to type.
 */
const LONG_CODE_LENGTH = 12

export interface IssueTokenDeps {
  random: RandomBytes
  encryption: Encryption
  codeKey: KeyObject
  now: () => Date
}

export interface TokenOrder
  extends Pick<
    NewOneTimeToken,
    'purpose' | 'relatesTo' | 'pkce' | 'isClaim' | 'isPretended' | 'sessionId' | 'isRepeat'
  > {
  /** Account at a provider that the proof links; stored sealed. */
  externalAccount?: object | undefined
  /** null: pretended, for an address without an account. */
  userId: string | null
  codeLength: number
  lifetimeSeconds: number
  /** Fixed code of a test address. */
  code?: string | undefined
}

export interface IssuedToken extends OneTimeToken {
  codeHash: Buffer
  /** The code was sent before, and its lifetime goes on. */
  repeatsCode: boolean
}

/**
 * Makes a link token and a code, which replace the user's live ones of this purpose. A repeated message keeps the code.
 */
export async function issueToken(
  { random, encryption, codeKey, now }: IssueTokenDeps,
  trx: Transaction<DB>,
  { userId, codeLength, lifetimeSeconds, code: fixedCode, externalAccount, ...token }: TokenOrder,
): Promise<IssuedToken> {
  const { purpose, relatesTo, pkce } = token
  const issuedAt = now()
  const last = await findLastCode(trx, userId ?? NIL_UUID, purpose)
  const hasUsedUp = last !== undefined && last.attempts >= MAX_ATTEMPTS
  const usedUpCodes = Math.min((last?.used_up_codes ?? 0) + Number(hasUsedUp), MAX_USED_UP_CODES)
  const isLong = usedUpCodes >= MAX_USED_UP_CODES && fixedCode === undefined
  // The prefix stays in the token: an expired link must be answered in its flow too (contract/auth-core.md 8).
  const linkToken = `${pkce ? 'pkce_' : ''}${random(32).toString('base64url')}`
  const made = { key: codeKey, purpose, relatesTo, length: isLong ? LONG_CODE_LENGTH : codeLength }
  const isFresh = last?.code_expires_at && issuedAt < last.code_expires_at
  const kept = token.isRepeat && isFresh && !hasUsedUp ? keptCode(made, last, fixedCode) : undefined
  const repeatsCode = kept !== undefined
  const codeSeed = fixedCode === undefined ? (kept?.seed ?? random(SEED_BYTES)) : null
  const code = codeSeed ? codeOf(made, codeSeed) : (fixedCode as string)
  const codeHash = hashCode(codeKey, purpose, relatesTo, code)
  const tokenHash = hashLinkToken(linkToken)
  const sealed = externalAccount && encryption.seal(SEALED.unprovenAccount, { token_hash: tokenHash }, externalAccount)
  if (userId === null) {
    await writeDecoys(trx, [`${purpose} ${relatesTo}`, `earlier ${purpose} ${relatesTo}`], issuedAt)
  } else {
    const expiresAt = new Date(issuedAt.getTime() + lifetimeSeconds * 1000)
    const stored = { tokenHash, codeHash, codeSeed, keepsCode: repeatsCode, externalAccount: sealed }
    await putOneTimeToken(trx, { ...token, ...stored, userId, usedUpCodes, isLong, expiresAt, now: issuedAt })
  }
  return { linkToken, code, codeHash, repeatsCode }
}

const SEED_BYTES = 16

interface MadeCode {
  key: KeyObject
  purpose: TokenPurpose
  relatesTo: string
  length: number
}

/** Makes the code of a seed, which only the server's key can make. */
function codeOf({ key, purpose, relatesTo, length }: MadeCode, seed: Buffer): string {
  let block = 0
  const bytes = () =>
    createHmac('sha256', key).update(`made\0${purpose}\0${relatesTo}\0${block++}\0`).update(seed).digest()
  return randomDigits(bytes, length)
}

/**
 * Returns the code that was sent before, and so its attempts are not multiplied by repeating the message. Undefined for
 * another address, and where the settings or the key have changed.
 */
function keptCode(made: MadeCode, last: NonNullable<Awaited<ReturnType<typeof findLastCode>>>, fixedCode?: string) {
  const { code_seed: seed, code_hash: hash, relates_to: relatesTo } = last
  const code = fixedCode ?? (seed && codeOf(made, seed))
  if (!code || !hash || relatesTo !== made.relatesTo) return undefined
  return isSameHash(hash, hashCode(made.key, made.purpose, relatesTo, code)) ? { seed } : undefined
}

export type RandomBytes = (size: number) => Buffer

/** Draws uniform, zero-padded digits. Bytes of 250 and above are dropped: they would make low digits likelier. */
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

/** Hashes a code, as typed, with its purpose and address: it is worth nothing for another. */
export const hashCode = (key: KeyObject, purpose: TokenPurpose, relatesTo: string, code: string): Buffer =>
  createHmac('sha256', key)
    .update(`${purpose}\0${relatesTo}\0${typedCode(code)}`)
    .digest()

export const isSameHash = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b)
