import { deleteBatch } from '@services/common/database'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Pkce } from './pkce.ts'

export interface NewAuthCode {
  codeHash: Buffer
  userId: string
  pkce: Pkce
  /** `amr` of the session it is exchanged for. */
  method: string
  /** Sealed tokens of the provider that is behind it. */
  providerTokens?: string
  expiresAt: Date
  now: Date
}

export async function insertAuthCode(trx: Transaction<DB>, code: NewAuthCode): Promise<void> {
  await trx
    .insertInto('auth_codes')
    .values({
      code_hash: code.codeHash,
      user_id: code.userId,
      code_challenge: code.pkce.challenge,
      code_challenge_method: code.pkce.method,
      authentication_method: code.method,
      provider_tokens: code.providerTokens ?? null,
      expires_at: code.expiresAt,
      created_at: code.now,
    })
    .execute()
}

export function findAuthCode(db: Kysely<DB>, codeHash: Buffer) {
  return db.selectFrom('auth_codes').selectAll().where('code_hash', '=', codeHash).executeTakeFirst()
}

/** Whoever gets true is the one who exchanges the code. */
export async function takeAuthCode(trx: Transaction<DB>, codeHash: Buffer): Promise<boolean> {
  const taken = await trx
    .deleteFrom('auth_codes')
    .where('code_hash', '=', codeHash)
    .returning('code_hash')
    .executeTakeFirst()
  return taken !== undefined
}

/** A password change makes codes of before worthless. */
export async function deleteAuthCodes(trx: Transaction<DB>, userId: string): Promise<void> {
  await trx.deleteFrom('auth_codes').where('user_id', '=', userId).execute()
}

/** Housekeeping. */
export function deleteExpiredAuthCodes(db: Kysely<DB>, before: Date, limit: number): Promise<number> {
  return deleteBatch(db, 'auth_codes', sql`expires_at < ${before}`, limit)
}
