import { jsonb } from '@services/common/database/pool'
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Insertable, type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { DB, WebauthnChallenge } from '../../db/tables.ts'

export type Challenge = Selectable<DB['factor_challenges']>

/** `ip` is the client's, which the answer must come from too. */
export type NewChallenge = Omit<Insertable<DB['factor_challenges']>, 'webauthn'> & { webauthn?: WebauthnChallenge }

export async function insertChallenge(trx: Transaction<DB>, { webauthn, ...challenge }: NewChallenge): Promise<void> {
  await trx
    .insertInto('factor_challenges')
    .values({ ...challenge, webauthn: (webauthn ? jsonb(webauthn) : null) as never })
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

/** Takes back an attempt that was right and could not be used. */
export async function refundAttempt(db: Kysely<DB>, id: string): Promise<void> {
  await db
    .updateTable('factor_challenges')
    .set((eb) => ({ attempts: eb('attempts', '-', 1) }))
    .where('id', '=', id)
    .where('attempts', '>', 0)
    .execute()
}

export const deleteExpiredChallenges = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'factor_challenges', { column: 'expires_at', before })
