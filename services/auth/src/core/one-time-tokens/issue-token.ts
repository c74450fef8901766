import type { KeyObject } from 'node:crypto'
import type { Transaction } from 'kysely'
import { writeForNobody } from '../../db/nobody.store.ts'
import type { DB, TokenPurpose } from '../../db/tables.ts'
import { NIL_UUID } from '../../db/uuid.ts'
import {
  countUsedUpCodes,
  hashCode,
  hashLinkToken,
  LONG_CODE_LENGTH,
  MAX_USED_UP_CODES,
  makeOneTimeToken,
  type OneTimeToken,
  type RandomBytes,
} from './one-time-token.ts'
import { findAttempts, putOneTimeToken } from './one-time-tokens.store.ts'
import type { Pkce } from './pkce.ts'

export interface IssueTokenDeps {
  random: RandomBytes
  codeKey: KeyObject
  now: () => Date
}

export interface TokenOrder {
  /** null: nobody's, only pretended. */
  userId: string | null
  purpose: TokenPurpose
  /** The address the message goes to; the code is worth something with this address only. */
  relatesTo: string
  codeLength: number
  lifetimeSeconds: number
  /** A code that is fixed instead of random: a test number's. */
  code?: string | undefined
  pkce?: Pkce | undefined
  isClaim?: boolean | undefined
  isPretended?: boolean | undefined
}

export interface IssuedToken extends OneTimeToken {
  /** Under which the code is stored; finds it again when its message leaves. */
  codeHash: Buffer
}

/** Makes a link token and a code, which replace the user's live ones of this purpose; only their hashes are stored. */
export async function issueToken(deps: IssueTokenDeps, trx: Transaction<DB>, order: TokenOrder): Promise<IssuedToken> {
  const now = deps.now()
  const usedUpCodes = countUsedUpCodes(await findAttempts(trx, order.userId ?? NIL_UUID, order.purpose))
  const isLong = usedUpCodes >= MAX_USED_UP_CODES && order.code === undefined
  const made = makeOneTimeToken(deps.random, isLong ? LONG_CODE_LENGTH : order.codeLength)
  const code = order.code ?? made.code
  // Known from the token alone, because an expired link must still be answered in its flow (contract/auth-core.md 8).
  const linkToken = order.pkce ? `pkce_${made.linkToken}` : made.linkToken
  const codeHash = hashCode(deps.codeKey, order.purpose, order.relatesTo, code)
  const tokenHash = hashLinkToken(linkToken)
  if (order.userId === null) {
    const what = `${order.purpose} ${order.relatesTo}`
    await writeForNobody(trx, [what, `earlier ${what}`], now)
    return { linkToken, code, codeHash }
  }
  await putOneTimeToken(trx, {
    userId: order.userId,
    purpose: order.purpose,
    relatesTo: order.relatesTo,
    tokenHash,
    codeHash,
    pkce: order.pkce,
    isClaim: order.isClaim ?? false,
    isPretended: order.isPretended ?? false,
    usedUpCodes,
    isLong,
    expiresAt: new Date(now.getTime() + order.lifetimeSeconds * 1000),
    now,
  })
  return { linkToken, code, codeHash }
}
