import type pg from 'pg'
import { type JobIndex, ROWS_OF_JOBS } from './pg-boss-tables.ts'

/**
 * Makes the indexes that are missing or invalid while jobs come and go. Replicas may start at once: the first makes
 * them.
 */
export async function makeIndexes(pool: pg.Pool, schema: string, indexes: readonly JobIndex[]): Promise<void> {
  if ((await withoutValid(pool, schema, indexes)).length === 0) return
  const client = await pool.connect()
  try {
    // A process that waited for the lock would stop the other's build, which waits for all older statements.
    const { rows } = await client.query('select pg_try_advisory_lock(hashtextextended($1, 0)) as locked', [
      `${schema} indexes`,
    ])
    if (!rows[0].locked) return
    for (const { name, on } of await withoutValid(client, schema, indexes)) {
      await client.query(`drop index concurrently if exists ${schema}.${name}`)
      await client.query(`create index concurrently ${name} on ${schema}.${ROWS_OF_JOBS} ${on}`)
    }
  } finally {
    // The end of the connection unlocks.
    client.release(true)
  }
}

async function withoutValid(db: pg.Pool | pg.PoolClient, schema: string, indexes: readonly JobIndex[]) {
  const { rows } = await db.query(
    `select relname from pg_index join pg_class on pg_class.oid = indexrelid
      where indrelid = $1::regclass and indisvalid`,
    [`${schema}.${ROWS_OF_JOBS}`],
  )
  const valid = new Set(rows.map(({ relname }) => relname))
  return indexes.filter(({ name }) => !valid.has(name))
}
