import { Kysely, type RawBuilder, sql } from 'kysely'
import pg from 'pg'
import type { Logger } from 'pino'
import { CommitDialect } from './after-commit.ts'
import { type ClientHooks, PreparingClient, StatementNames, TracedClient, TracedPool } from './database-connection.ts'
import { isDatabaseRefusal, isDatabaseUnavailable } from './database-errors.ts'
import { checkIdleConnections, noteOpenPool } from './idle-connections.ts'
import { tablePrefixPlugin } from './table-prefix.ts'

export interface DatabaseOptions {
  url: string
  /** 0: as many connections as requests need at once (the specification's default); set it when replicas share a server. */
  maxPoolSize: number
  applicationName: string
  log: Logger
  /** Literal prefix of every table in `tables`: namespace `acme` makes `acme_users`. */
  namespace?: string | undefined
  tables?: readonly string[]
  /** 0: statements may take their time, as migrations do. */
  statementWithinMs?: number | undefined
  /** Whether statements get spans where a request or job has one. */
  isTraced?: boolean
  /** Longest wait for a connection of the pool. */
  connectWithinMs?: number | undefined
}

/** How long a request waits for a connection before it is answered 503. */
const CONNECT_WITHIN_MS = 5_000

/** Ends a statement the server would otherwise run on after the caller gave up; no query of ours needs a second. */
const STATEMENT_WITHIN_MS = 15_000

/** A pool reports each kind of trouble with its database once in this time, not for each request. */
const REPORT_EVERY_MS = 60_000

const LOST_NAME =
  'prepared statements get lost between service and PostgreSQL: set max_prepared_statements of PgBouncer (1.21 or later) to 200, ' +
  'or its pool_mode to session'

export interface Database<DB> {
  db: Kysely<DB>
  pool: pg.Pool
  /** Ends the pool too where no query was built, which the query builder alone would leave open. */
  close(): Promise<void>
}

/** A pool and its query builder. The pool replaces broken connections by itself, so a restarted server needs nothing. */
export function openDatabase<DB>(options: DatabaseOptions): Database<DB> {
  const { statementWithinMs = STATEMENT_WITHIN_MS, connectWithinMs = CONNECT_WITHIN_MS } = options
  const noteGivenUp = onceIn(REPORT_EVERY_MS, (err) => options.log.warn({ err }, 'database connection given up'))
  const hooks: ClientHooks = {
    names: new StatementNames(),
    noteRefusal: onceIn(REPORT_EVERY_MS, (err) => {
      if (!pool.ending) options.log.warn({ err: withoutStack(err) }, 'database connection failed')
    }),
    noteLostCancel: onceIn(REPORT_EVERY_MS, (err) => options.log.warn({ err }, 'a statement could not be cancelled')),
    noteUseless: (err) => {
      if (err) noteGivenUp(err)
      checkIdleConnections(options.url)
    },
    noteLostName: onceIn(REPORT_EVERY_MS, (err) => options.log.error({ err }, LOST_NAME)),
  }
  const Client = options.isTraced ? TracedClient : PreparingClient
  const pool = new (options.isTraced ? TracedPool : pg.Pool)({
    connectionString: options.url,
    max: options.maxPoolSize || Number.POSITIVE_INFINITY,
    application_name: options.applicationName,
    connectionTimeoutMillis: connectWithinMs,
    idleTimeoutMillis: 30_000,
    statement_timeout: statementWithinMs,
    // A second more: a statement that waits for the locks of a transaction whose client fell silent ends first. It would get them
    // otherwise, and where its client is silent too hold them as long again.
    idle_in_transaction_session_timeout: STATEMENT_WITHIN_MS + 1_000,
    // The server ends a statement by itself; this is for a server that is not heard of any more.
    ...(statementWithinMs > 0 ? { query_timeout: statementWithinMs + 2_000 } : {}),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: { getTypeParser },
    Client: class extends Client {
      constructor(config?: pg.ClientConfig) {
        super(config, hooks)
      }
    },
  })
  // A connection that breaks fails the statement it runs, if any. Without a listener of its own a connection that is
  // checked out but between two statements of a transaction would end the process instead.
  const noteLoss = (err: Error) => {
    // The pool calls itself closed before the server has read its goodbyes: who stops then loses nothing.
    if (!pool.ending) options.log.warn({ err }, 'database connection lost')
  }
  pool.on('error', () => {}) // noted by the connection itself
  pool.on('connect', (client) => {
    // The server's last words, and then the end of the connection, are two errors about one loss.
    client.once('error', noteLoss).on('error', () => {})
  })
  pool.on('release', (err, client) => {
    if (!(client instanceof PreparingClient)) return
    if (err) client.noteFailure(err)
    // The pool keeps no connection that is ending.
    if (client.isUseless) client.end().catch(() => {})
  })
  const forgetPool = noteOpenPool(options.url, pool)
  const plugins = options.namespace ? [tablePrefixPlugin(`${options.namespace}_`, options.tables ?? [])] : []
  const db = new Kysely<DB>({ dialect: new CommitDialect({ pool }), plugins })
  return {
    db,
    pool,
    close: async () => {
      forgetPool()
      await db.destroy()
      if (!pool.ending) await pool.end()
    },
  }
}

/** Runs `work` on a database that is closed afterwards: what a command does. */
export async function withDatabase<DB, Result>(
  options: DatabaseOptions,
  work: (db: Kysely<DB>) => Promise<Result>,
): Promise<Result> {
  // A command says itself, in one line, why it cannot reach the database.
  const { db, close } = openDatabase<DB>({ ...options, log: options.log.child({}, { level: 'error' }) })
  try {
    return await work(db)
  } finally {
    await close()
  }
}

/** The literal prefix of a namespace, for SQL that is not built by Kysely (migrations, limiter tables). */
export const tablePrefix = (namespace: string | undefined) => (namespace ? `${namespace}_` : '')

/** bigint columns are counters and sizes far below 2^53: a number, not a string. */
function getTypeParser(oid: number, format?: 'text' | 'binary') {
  return oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format)
}

/** A refused connection is the same wherever it was asked for. */
const withoutStack = ({ name, message, ...rest }: Error) => ({ ...rest, type: name, message })

/** Calls `work` at most once in `ms`. */
function onceIn(ms: number, work: (err: Error) => void): (err: Error) => void {
  let lastAt = Number.NEGATIVE_INFINITY
  return (err) => {
    const now = performance.now()
    if (now - lastAt < ms) return
    lastAt = now
    work(err)
  }
}

/** How long a start waits for a database that is not up yet. */
const REACHABLE_WITHIN_MS = 60_000

/** Waits until the server takes connections; throws the last refusal after a minute. */
export async function waitForDatabase(pool: pg.Pool, log: Logger): Promise<void> {
  const deadline = Date.now() + REACHABLE_WITHIN_MS
  for (let attempt = 0; ; attempt++) {
    try {
      await pool.query('select 1')
      return
    } catch (err) {
      if (isDatabaseRefusal(err) || !isDatabaseUnavailable(err) || Date.now() > deadline) throw err
      if (attempt === 0) log.warn({ err }, 'database not reachable yet, waiting')
      await new Promise((resolve) => setTimeout(resolve, Math.min(2_000, 100 * 2 ** attempt)))
    }
  }
}

/** A jsonb value; pg would otherwise send a JavaScript array as a PostgreSQL array. */
export const jsonb = <Value>(value: Value) => sql<Value>`${JSON.stringify(value)}::jsonb`

/** Deletes up to `limit` rows that match and that nobody holds; how many it were. */
export async function deleteBatch<DB>(
  db: Kysely<DB>,
  table: keyof DB & string,
  condition: RawBuilder<unknown>,
  limit: number,
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from ${sql.table(table)} where ctid = any (array(
      select ctid from ${sql.table(table)} where ${condition} limit ${limit} for update skip locked))`.execute(db)
  return Number(numAffectedRows ?? 0)
}
