type Queryable = { query: (sql: string) => Promise<{ rowCount: number | null }> }

/**
 * Counts the sessions of this database that wait for a lock; `pg_locks` would include other databases of the server.
 */
export async function countLockWaits(client: Queryable): Promise<number> {
  // A transaction would otherwise keep the first snapshot of the statistics.
  await client.query('select pg_stat_clear_snapshot()')
  const { rowCount } = await client.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rowCount ?? 0
}
