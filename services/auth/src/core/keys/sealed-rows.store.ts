import { jsonb } from '@services/common/database/pool'
import { type Kysely, sql } from 'kysely'
import type { DB, SealedRows } from '../../db/tables.ts'
import { type Cell, CHECK_CHARACTERS } from './encryption.ts'
import { KEY_ID } from './encryption-keys.ts'
import { SEALED_COLUMNS, type SealedColumn } from './sealed-columns.ts'

/** Counts all sealed rows by the key that each names; it reads the tables whole. */
export async function countSealedRows(db: Kysely<DB>): Promise<SealedRows[]> {
  const counts = SEALED_COLUMNS.map(({ table, column }) => {
    const text = sql.ref(column)
    return sql`select ${table}::text as "table",
      case when ${text} like 'v2.%' then split_part(${text}, '.', 2) else '?' end as name,
      left(split_part(${text}, '.', 3), ${CHECK_CHARACTERS}) as "check"
      from ${sql.table(table)} where ${text} is not null`
  })
  const { rows } = await sql<SealedRows>`select id, "check", "table", count(*)::integer as rows
    from (${sql.join(counts, sql` union all `)}) sealed,
      lateral (select case when name ~ ${KEY_ID.source} then name when name <> '' then '?' end as id) named
    group by id, "check", "table" order by id, "check", "table"`.execute(db)
  return rows
}

/**
 * Whether this process is to count: no other one has begun to since `before`. It locks the row, so call it if one is
 * due.
 */
export async function claimCount(db: Kysely<DB>, { now, before }: { now: Date; before: Date }): Promise<boolean> {
  const claimed = await db
    .insertInto('sealed_row_counts')
    .values({ claimed_at: now })
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet({ claimed_at: now }).where('sealed_row_counts.claimed_at', '<=', before),
    )
    .returning('id')
    .executeTakeFirst()
  return claimed !== undefined
}

/** Stores a count for all processes. */
export async function saveCount(db: Kysely<DB>, counts: readonly SealedRows[], now: Date): Promise<void> {
  const row = { counts: jsonb(counts), claimed_at: now }
  await db
    .insertInto('sealed_row_counts')
    .values(row)
    .onConflict((conflict) => conflict.column('id').doUpdateSet(row))
    .execute()
}

/** The last count of any process, null while the first one runs, and when one last began. */
export const findCount = (db: Kysely<DB>) =>
  db.selectFrom('sealed_row_counts').select(['counts', 'claimed_at']).executeTakeFirst()

export type SealedRow = Record<string, Cell>

/** Lists rows that the writing key has not sealed, by their key. `after` is the last row of the batch before. */
export async function listOutdated(
  db: Kysely<DB>,
  { table, column, key, boundTo }: SealedColumn,
  { prefix, after, limit }: { prefix: string; after: SealedRow | undefined; limit: number },
): Promise<SealedRow[]> {
  const columns = [...new Set([key, ...boundTo, column])].map((name) => sql.ref(name))
  const isNext = after ? sql`and ${sql.ref(key)} > ${after[key]}` : sql``
  const { rows } = await sql<SealedRow>`select ${sql.join(columns)} from ${sql.table(table)}
    where ${sql.ref(column)} is not null and not starts_with(${sql.ref(column)}, ${prefix}) ${isNext}
    order by ${sql.ref(key)} limit ${limit}`.execute(db)
  return rows
}

export interface Resealed {
  key: Cell
  before: Cell
  after: string
}

/**
 * Replaces texts that are still the same, and returns how many. It skips locked rows: it waits for no request, and no
 * order of locks can end in a deadlock.
 */
export async function replaceSealed(
  db: Kysely<DB>,
  { table, column, key, keyType }: SealedColumn,
  resealed: readonly Resealed[],
): Promise<number> {
  if (resealed.length === 0) return 0
  const [rows, id, text] = [sql.table(table), sql.ref(`stored.${key}`), sql.ref(`stored.${column}`)]
  const values = resealed.map((row) => sql`(${row.key}::${sql.raw(keyType)}, ${row.before}::text, ${row.after}::text)`)
  const { numAffectedRows } = await sql`
    with resealed (key, before, after) as (values ${sql.join(values)}),
    locked as (
      select ${id} as key from ${rows} stored join resealed on ${id} = resealed.key and ${text} = resealed.before
      for update of stored skip locked
    )
    update ${rows} stored set ${sql.ref(column)} = resealed.after
    from resealed join locked on locked.key = resealed.key
    where ${id} = resealed.key and ${text} = resealed.before`.execute(db)
  return Number(numAffectedRows ?? 0)
}
