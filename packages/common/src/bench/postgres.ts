import pg from 'pg'

export type BenchDatabase = ReturnType<typeof lookInto>

/** Reads PostgreSQL's statistics on a connection of its own. */
export function lookInto(url: string) {
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  // A server that stops at the end of a run ends the idle connection; a query on a lost one fails by itself.
  pool.on('error', () => {})
  const one = async (text: string, values: unknown[] = []): Promise<unknown[]> =>
    (await pool.query({ text, values, rowMode: 'array' })).rows[0] ?? []
  return {
    pool,
    version: async () => String((await one('show server_version'))[0]).split(' ')[0] as string,
    databaseBytes: async () => Number((await one('select pg_database_size(current_database())'))[0]),
    tableBytes: async (table: string) => {
      const [all, indexes] = await one('select pg_total_relation_size($1::regclass), pg_indexes_size($1::regclass)', [
        table,
      ])
      return { all: Number(all), indexes: Number(indexes) }
    },
    rowCount: async (table: string) => Number((await one(`select count(*) from ${table}`))[0]),
    /** Bytes of write-ahead log since initdb. */
    walBytes: async () => Number((await one("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))[0]),
    /** Counts transactions and written rows; backends report them with up to a second's delay. */
    activity: async () => {
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      const [commits, rows] = await one(
        `select xact_commit, tup_inserted + tup_updated + tup_deleted from pg_stat_database
           where datname = current_database()`,
      )
      return { commits: Number(commits), rowsWritten: Number(rows) }
    },
    close: () => pool.end(),
  }
}
