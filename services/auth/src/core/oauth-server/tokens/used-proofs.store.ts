import { createHash } from 'node:crypto'
import { prepared } from '@services/common/database/prepared-statement'
import type { Kysely } from 'kysely'
import type { DB } from '../../../db/tables.ts'

const insert = prepared((db: Kysely<DB>, proof: { key: Buffer; expiresAt: Date }) =>
  db
    .insertInto('used_oauth_proofs')
    .values({ key: proof.key, expires_at: proof.expiresAt })
    .onConflict((conflict) => conflict.doNothing())
    .returning('key'),
)

/** Marks a proof as used until it is refused by its age; false if it was. `what` names it among all proofs. */
export async function useProof(db: Kysely<DB>, what: readonly string[], expiresAt: Date): Promise<boolean> {
  const key = createHash('sha256').update(JSON.stringify(what)).digest()
  return (await insert(db, { key, expiresAt })).length > 0
}
