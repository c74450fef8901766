import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** Stored and actual sum of a token's bytes. */
export interface StoredSum {
  tokenId: string
  noted: number
  counted: number
}

/** Lists wrong sums. One statement reads both, which change in the same transactions: they are of one moment. */
export async function listWrongSums(db: Kysely<DB>): Promise<StoredSum[]> {
  const isWrong = sql<boolean>`(coalesce(counted.clips, 0), coalesce(counted.bytes, 0), coalesce(counted.reserved, 0))
    <> (coalesce(noted.clips, 0), coalesce(noted.bytes, 0), coalesce(noted.reserved_bytes, 0))`
  return db
    .selectFrom('api_tokens')
    .leftJoin('token_storage as noted', 'noted.token_id', 'api_tokens.id')
    .leftJoin(countStored(db).as('counted'), 'counted.token_id', 'api_tokens.id')
    .select([
      'api_tokens.id as tokenId',
      sql<number>`coalesce(noted.bytes + noted.reserved_bytes, 0)`.as('noted'),
      sql<number>`coalesce(counted.bytes + counted.reserved, 0)`.as('counted'),
    ])
    .where(isWrong)
    .orderBy('api_tokens.id')
    .execute()
}

/** Locks the sum and counts again: concurrent changes are applied afterwards. */
export async function correctSum(trx: Transaction<DB>, tokenId: string): Promise<void> {
  await trx
    .insertInto('token_storage')
    .values({ token_id: tokenId })
    .onConflict((conflict) => conflict.column('token_id').doUpdateSet({ token_id: tokenId }))
    .execute()
  const counted = await countStored(trx).where('clips.token_id', '=', tokenId).executeTakeFirst()
  await trx
    .updateTable('token_storage')
    .set({ clips: counted?.clips ?? 0, bytes: counted?.bytes ?? 0, reserved_bytes: counted?.reserved ?? 0 })
    .where('token_id', '=', tokenId)
    .execute()
}

/** Counts like the triggers of migrations 0008 and 0009, for all clips at once. */
const countStored = (db: Kysely<DB>) =>
  db
    .selectFrom('clips')
    .innerJoin('sources', 'sources.id', 'clips.source_id')
    .select([
      'clips.token_id',
      sql<number>`count(*)`.as('clips'),
      sql<number>`sum(sources.bytes + sources.rendition_bytes)::bigint`.as('bytes'),
      sql<number>`coalesce(sum(sources.reserved_bytes) filter (where sources.state = 'processing'), 0)::bigint`.as(
        'reserved',
      ),
    ])
    .where('clips.token_id', 'is not', null)
    .where('sources.state', '!=', 'failed')
    .groupBy('clips.token_id')
