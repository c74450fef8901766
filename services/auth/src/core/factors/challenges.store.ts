import { deleteBatch, jsonb } from '@services/common/database'
import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { DB, WebauthnChallenge } from '../../db/tables.ts'

export type Challenge = Selectable<DB['factor_challenges']>

export interface NewChallenge {
  id: string
  factorId: string
  /** Of who asks; the answer must come from there too. */
  ip: string | null
  codeHash?: Buffer | undefined
  webauthn?: WebauthnChallenge | undefined
  expiresAt: Date
  now: Date
}

export async function insertChallenge(trx: Transaction<DB>, challenge: NewChallenge): Promise<void> {
  await trx
    .insertInto('factor_challenges')
    .values({
      id: challenge.id,
      factor_id: challenge.factorId,
      ip: challenge.ip,
      code_hash: challenge.codeHash ?? null,
      webauthn: (challenge.webauthn ? jsonb(challenge.webauthn) : null) as never,
      expires_at: challenge.expiresAt,
      created_at: challenge.now,
    })
    .execute()
}

/** With whether it was asked for from this address; PostgreSQL compares, as IPv6 has many spellings of one. */
export function findChallenge(
  db: Kysely<DB>,
  factorId: string,
  id: string,
  ip: string | null,
): Promise<(Challenge & { is_from_here: boolean }) | undefined> {
  return db
    .selectFrom('factor_challenges')
    .selectAll()
    .select(sql<boolean>`ip is not distinct from ${ip}::inet`.as('is_from_here'))
    .where('id', '=', id)
    .where('factor_id', '=', factorId)
    .executeTakeFirst() as Promise<(Challenge & { is_from_here: boolean }) | undefined>
}

export async function deleteChallenge(db: Kysely<DB>, id: string): Promise<void> {
  await db.deleteFrom('factor_challenges').where('id', '=', id).execute()
}

/** What was asked of a factor before does not count for what it is now. */
export async function deleteChallengesOf(trx: Transaction<DB>, factorId: string): Promise<void> {
  await trx.deleteFrom('factor_challenges').where('factor_id', '=', factorId).execute()
}

/** A challenge is answered once: whoever gets true is the one. */
export async function takeChallenge(trx: Transaction<DB>, id: string, now: Date): Promise<boolean> {
  const taken = await trx
    .updateTable('factor_challenges')
    .set({ verified_at: now })
    .where('id', '=', id)
    .where('verified_at', 'is', null)
    .returning('id')
    .executeTakeFirst()
  return taken !== undefined
}

/** Counts a try before it is looked at; false: there were enough of them. */
export async function countAttempt(db: Kysely<DB>, id: string, most: number): Promise<boolean> {
  const counted = await db
    .updateTable('factor_challenges')
    .set((eb) => ({ attempts: eb('attempts', '+', 1) }))
    .where('id', '=', id)
    .where('attempts', '<', most)
    .returning('id')
    .executeTakeFirst()
  return counted !== undefined
}

/** Housekeeping. */
export function deleteExpiredChallenges(db: Kysely<DB>, before: Date, limit: number): Promise<number> {
  return deleteBatch(db, 'factor_challenges', sql`expires_at < ${before}`, limit)
}
