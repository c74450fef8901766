import pg from 'pg'

/**
 * Fills `tables` with the rows of `statements`, without foreign keys and triggers. Indexes are built afterwards, which
 * takes a fraction of the time. Afterwards the tables are vacuumed, as they would be in production.
 */
export async function loadRows(url: string, tables: readonly string[], statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query("set session_replication_role = 'replica'")
    await client.query("set maintenance_work_mem = '512MB'")
    await client.query('set synchronous_commit = off')
    const { rows: indexes } = await client.query<{ name: string; definition: string }>(
      `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition
       from pg_index where indrelid = any ($1::regclass[]) and not indisprimary`,
      [tables],
    )
    for (const { name } of indexes) await client.query(`drop index ${name}`)
    for (const statement of statements) await client.query(statement)
    for (const { definition } of indexes) await client.query(definition)
    for (const table of tables) await client.query(`vacuum (analyze) ${table}`)
    await client.query('checkpoint')
  } finally {
    await client.end()
  }
}
