import pg from 'pg'
import { loneStatements, readMigrations, withoutComments } from '../../migrations/migration-files.ts'

/** Modes that an `insert`, `update` or `delete` waits for. */
const STOPS_WRITERS = ['ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock']

/** Rows of one batch: requests wait for the locks of all of them. */
const MAX_BATCH = 1_000

interface Scene {
  /** An empty database. */
  url: string
  folder: string
  /** The last migration whose locks are not examined. */
  from: string
  /** SQL that fills tables after that one, each with more than MAX_BATCH rows. */
  fill: string
}

/**
 * Applies all migrations and describes statements that could keep requests waiting for as long as a table is large.
 * They stop its writers and read or write rows meanwhile, or change more than a batch at once. Independent of time and
 * of size.
 */
export async function longLocks({ url, folder, from, fill }: Scene): Promise<string[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const files = await readMigrations(folder, undefined)
  const first = files.findIndex(({ name }) => name === from) + 1
  for (const { sql } of files.slice(0, first)) await client.query(sql)
  await client.query(fill)
  const found: string[] = []
  for (const { name, sql, isAlone } of files.slice(first)) {
    const statements = isAlone ? loneStatements(sql) : [{ sql, isRepeated: false }]
    for (const { sql, isRepeated } of statements) {
      // It cannot run in a transaction, and never stops writers.
      if (/\bconcurrently\b/i.test(withoutComments(sql))) await client.query(sql)
      else for (let isDone = false; !isDone; ) isDone = (await examine(client, name, sql, found)) === 0 || !isRepeated
    }
  }
  await client.end()
  return found
}

/** Runs a statement in a transaction; resolves to the rows that it changed. */
async function examine(client: pg.Client, name: string, sql: string, found: string[]): Promise<number> {
  await client.query('begin')
  const before = await touched(client)
  const results = [await client.query(sql)].flat()
  const after = await touched(client)
  const { rows: locks } = await client.query(
    `select distinct relname from pg_locks join pg_class c on c.oid = relation
     where pid = pg_backend_pid() and relkind = 'r' and mode = any ($1)`,
    [STOPS_WRITERS],
  )
  await client.query('commit')
  const locked = locks.map(({ relname }) => relname).filter((table) => before.has(table))
  for (const [table, { read, changed }] of after) {
    const was = before.get(table)
    if (!was) continue
    if (changed - was.changed > MAX_BATCH)
      found.push(`${name}: changes more than ${MAX_BATCH} rows of ${table} at once`)
    const isTouched = read > was.read || changed > was.changed
    if (isTouched && locked.length > 0) found.push(`${name}: reads or writes ${table} while writers of ${locked} wait`)
  }
  return results.reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0)
}

/** Rows of each table that this connection has read by scans and changed. */
async function touched(client: pg.Client): Promise<Map<string, { read: number; changed: number }>> {
  const { rows } = await client.query(
    `select relname, coalesce(seq_tup_read, 0)::integer as read, (n_tup_ins + n_tup_upd + n_tup_del)::integer as changed
     from pg_stat_xact_user_tables`,
  )
  return new Map(rows.map(({ relname, ...counts }) => [relname, counts]))
}
