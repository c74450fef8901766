type Queryable = { query: (sql: string) => Promise<{ rowCount: number | null }> }

/** How many sessions of this database wait for a lock. Other test files have databases on the same server: `pg_locks` names their waits too. */
export async function countLockWaits(client: Queryable): Promise<number> {
  // Within a transaction the first look would be the answer to each later one.
  await client.query('select pg_stat_clear_snapshot()')
  const { rowCount } = await client.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rowCount ?? 0
}
