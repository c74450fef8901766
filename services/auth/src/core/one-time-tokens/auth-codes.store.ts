import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import type { Kysely, Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import type { Encryption } from '../keys/encryption.ts'
import { SEALED } from '../keys/sealed-columns.ts'
import { hashLinkToken, type RandomBytes } from './one-time-token.ts'
import type { Pkce } from './pkce.ts'

/** Tokens that a provider issued at a sign-in; stored sealed until the application exchanges its code. */
export interface ProviderTokens {
  provider: string
  accessToken: string
  refreshToken?: string | undefined
  /** Identity that signed in; undefined where the user was admitted without linking the account. */
  identityId?: string | undefined
}

interface NewAuthCode {
  userId: string
  pkce: Pkce
  /** `amr` of the session it is exchanged for. */
  method: string
  providerTokens?: ProviderTokens
  /** Session that began what gives the code; null for a sign-in. */
  sessionId: string | null
  /** Whether the exchange gives the tokens of that session instead of starting one. */
  handsOver?: boolean
}

interface IssueCodeDeps {
  config: Pick<Config, 'signup'>
  encryption: Encryption
  now: () => Date
  random: RandomBytes
}

/** Returns a code for POST /token?grant_type=pkce that lives from the click on (contract/auth-core.md 18, BUG6). */
export async function issueAuthCode(
  { config, encryption, now, random }: IssueCodeDeps,
  trx: Transaction<DB>,
  { userId, pkce, method, providerTokens, sessionId, handsOver = false }: NewAuthCode,
): Promise<string> {
  const authCode = random(32).toString('base64url')
  const codeHash = hashLinkToken(authCode)
  const issuedAt = now()
  await trx
    .insertInto('auth_codes')
    .values({
      code_hash: codeHash,
      user_id: userId,
      code_challenge: pkce.challenge,
      code_challenge_method: pkce.method,
      authentication_method: method,
      provider_tokens: providerTokens
        ? encryption.seal(SEALED.providerTokens, { code_hash: codeHash }, providerTokens)
        : null,
      session_id: sessionId,
      hands_over: handsOver,
      expires_at: new Date(issuedAt.getTime() + config.signup.pkceCodeLifetimeSeconds * 1000),
      created_at: issuedAt,
    })
    .execute()
  return authCode
}

export function findAuthCode(db: Kysely<DB>, codeHash: Buffer) {
  return db.selectFrom('auth_codes').selectAll().where('code_hash', '=', codeHash).executeTakeFirst()
}

/** Deletes the code; of parallel requests one gets true and may exchange it. */
export async function takeAuthCode(trx: Transaction<DB>, codeHash: Buffer): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('auth_codes')
    .where('code_hash', '=', codeHash)
    .executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}

export async function deleteAuthCodes(trx: Transaction<DB>, userId: string): Promise<void> {
  await trx.deleteFrom('auth_codes').where('user_id', '=', userId).execute()
}

export const deleteExpiredAuthCodes = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'auth_codes', { column: 'expires_at', before })
