import type { Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import { insertAuthCode, type NewAuthCode } from './auth-codes.store.ts'
import { hashLinkToken, type RandomBytes } from './one-time-token.ts'

export interface AuthCodeDeps {
  config: Pick<Config, 'signup'>
  now: () => Date
  random: RandomBytes
}

/** A code the application exchanges at POST /token?grant_type=pkce. It lives from the click that got it (BUG6). */
export async function issueAuthCode(
  { config, now, random }: AuthCodeDeps,
  trx: Transaction<DB>,
  code: Omit<NewAuthCode, 'codeHash' | 'expiresAt' | 'now'>,
): Promise<string> {
  const authCode = random(32).toString('base64url')
  const issuedAt = now()
  const expiresAt = new Date(issuedAt.getTime() + config.signup.pkceCodeLifetimeSeconds * 1000)
  await insertAuthCode(trx, { ...code, codeHash: hashLinkToken(authCode), expiresAt, now: issuedAt })
  return authCode
}
