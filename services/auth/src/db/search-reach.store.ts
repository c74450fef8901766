import { type Kysely, sql } from 'kysely'
import type { DB } from './tables.ts'

/** Rows that a search may read one by one, in about 100 ms. */
export const MAX_SCANNED = 50_000

/** Reads the planner's size of a table and whether all its trigram indexes are there. */
export async function searchReach(
  db: Kysely<DB>,
  table: keyof DB & string,
): Promise<{ isLarge: boolean; hasTrigrams: boolean }> {
  const { rows } = await sql<{ isLarge: boolean; hasTrigrams: boolean }>`
    select reltuples > ${sql.lit(MAX_SCANNED)} as "isLarge",
      (select count(*) = 3 from pg_index join pg_class index on index.oid = indexrelid
        where indrelid = searched.oid and index.relname like '%\\_trgm\\_idx' and indisvalid) as "hasTrigrams"
    from pg_class searched
    where oid = (select tableoid from ${sql.table(table)} limit 1)`.execute(db)
  return rows[0] ?? { isLarge: false, hasTrigrams: false }
}
