import { prepared } from '@services/common/database/prepared-statement'
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import type { Kysely } from 'kysely'
import { MAX_CHALLENGE_MINUTES } from '../../config/factors/passkeys.ts'
import type { DB } from '../../db/tables.ts'

const insert = prepared((db: Kysely<DB>, used: { id: string; expires_at: Date }) =>
  db
    .insertInto('used_passkey_challenges')
    .values({ id: used.id, expires_at: used.expires_at })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id'),
)

/** Marks a challenge as used, until any setting refuses it by its age; false if it was. */
export async function markUsed(db: Kysely<DB>, id: string, issuedMs: number): Promise<boolean> {
  const inserted = await insert(db, { id, expires_at: new Date(issuedMs + MAX_CHALLENGE_MINUTES * 60_000) })
  return inserted.length > 0
}

export const deleteExpiredUses = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'used_passkey_challenges', { column: 'expires_at', before })
