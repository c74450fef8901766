import { deleteBatch, jsonb } from '@services/common/database'
import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { DB, WebauthnChallenge } from '../../db/tables.ts'

export type Challenge = Selectable<DB['factor_challenges']>

export interface NewChallenge {
  id: string
  factorId: string
  /** Client address; the answer must come from it too. */
  ip: string | null
  codeHash?: Buffer | undefined
  webauthn?: WebauthnChallenge | undefined
  expiresAt: Date
  now: Date
}

export async function insertChallenge(trx: Transaction<DB>, challenge: NewChallenge): Promise<void> {
  const { id, factorId: factor_id, ip, codeHash: code_hash = null, expiresAt: expires_at, now: created_at } = challenge
  const webauthn = (challenge.webauthn ? jsonb(challenge.webauthn) : null) as never
  await trx
    .insertInto('factor_challenges')
    .values({ id, factor_id, ip, code_hash, webauthn, expires_at, created_at })
    .execute()
}

/** PostgreSQL compares the client addresses: IPv6 has many spellings of one. */
export function findChallenge(db: Kysely<DB>, factorId: string, id: string, ip: string | null) {
  return db
    .selectFrom('factor_challenges')
    .selectAll()
    .select(sql<boolean>`ip is not distinct from ${ip}::inet`.as('is_from_here'))
    .where('id', '=', id)
    .where('factor_id', '=', factorId)
    .executeTakeFirst()
}

export async function deleteChallenge(db: Kysely<DB>, id: string): Promise<void> {
  await db.deleteFrom('factor_challenges').where('id', '=', id).execute()
}

export async function deleteChallengesOf(trx: Transaction<DB>, factorId: string): Promise<void> {
  await trx.deleteFrom('factor_challenges').where('factor_id', '=', factorId).execute()
}

/** Marks a challenge as answered; of parallel answers one gets true. */
export async function takeChallenge(trx: Transaction<DB>, id: string, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('factor_challenges')
    .set({ verified_at: now })
    .where('id', '=', id)
    .where('verified_at', 'is', null)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Counts an attempt before it is checked; false: none is left. */
export async function countAttempt(db: Kysely<DB>, id: string, most: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('factor_challenges')
    .set((eb) => ({ attempts: eb('attempts', '+', 1) }))
    .where('id', '=', id)
    .where('attempts', '<', most)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

export function deleteExpiredChallenges(db: Kysely<DB>, before: Date, limit: number): Promise<number> {
  return deleteBatch(db, 'factor_challenges', sql`expires_at < ${before}`, limit)
}
