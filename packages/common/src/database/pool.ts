// Pools and their query builders. A connection that fails or goes silent costs one statement, never the process. A
// connection: connection.ts. Errors and their meanings: errors.ts. Settings: settings.ts.
import { Kysely, sql } from 'kysely'
import pg from 'pg'
import type { Logger } from 'pino'
import { CommitDialect } from './after-commit.ts'
import { checkIdleConnections, recordOpenPool } from './check-idle-connections.ts'
import { type ClientHooks, PreparingClient, StatementNames, TracedClient, TracedPool } from './connection.ts'
import { isDatabaseRefusal, isDatabaseUnavailable } from './errors.ts'
import { addressesOf, attemptEachAddress, requireWrites } from './failover.ts'
import { checkPooler, type DatabaseAddress, pastPooler } from './pooler.ts'
import { tablePrefixPlugin } from './table-prefix.ts'

export interface DatabaseOptions extends DatabaseAddress {
  /** 0 is unlimited, the specification's default; set it when replicas share a server. */
  maxPoolSize: number
  applicationName: string
  log: Logger
  /** Prefix of every table in `tables`: namespace `acme` makes `acme_users`. */
  namespace?: string | undefined
  tables?: readonly string[]
  /** Time limit of a statement; 0 is none, for migrations. Behind a pooler the role's limit applies as well. */
  statementWithinMs?: number | undefined
  isTraced?: boolean
  connectWithinMs?: number | undefined
}

/** Longest wait for a connection before the request is answered 503. */
const CONNECT_WITHIN_MS = 5_000

/** Time limit of a statement, which would otherwise outlive its caller; no query of ours needs a second. */
const STATEMENT_WITHIN_MS = 15_000

/** Interval between two log lines of one kind about the database. */
const REPORT_EVERY_MS = 60_000

const LOST_NAME =
  'prepared statements are lost between the service and PostgreSQL: set max_prepared_statements of PgBouncer (1.21 or later) to 200, ' +
  'or its pool_mode to session'

export interface Database<DB> {
  db: Kysely<DB>
  pool: pg.Pool
  /** Closes the pool as well; Kysely leaves it open when no query was built. */
  close(): Promise<void>
}

/** Opens a pool and its query builder. The pool replaces broken connections, so a restarted server needs no action. */
export function openDatabase<DB>(options: DatabaseOptions): Database<DB> {
  const { statementWithinMs = STATEMENT_WITHIN_MS, connectWithinMs = CONNECT_WITHIN_MS } = options
  const logGivenUp = reportSome((err) => options.log.warn({ err }, 'database connection given up'))
  const hooks: ClientHooks = {
    names: new StatementNames(),
    onRefusal: reportSome((err) => {
      if (!pool.ending) options.log.warn({ err: withoutStack(err) }, 'database connection failed')
    }),
    onLostCancel: reportSome((err) => options.log.warn({ err }, 'statement could not be cancelled')),
    onUseless: (err) => {
      if (err) logGivenUp(err)
      checkIdleConnections(options.url)
    },
    onLostName: reportSome((err) => options.log.error({ err }, LOST_NAME)),
  }
  let lastHost: string | undefined
  const recordHost = ({ host, port }: pg.Client) => {
    const next = `${host}:${port}`
    if (lastHost !== undefined && lastHost !== next) options.log.warn({ host: next }, 'database host changed')
    lastHost = next
  }
  const Client = options.isTraced ? TracedClient : PreparingClient
  const addresses = addressesOf(options.url, options.fallbackUrls)
  const addressWithinMs = connectWithinMs / addresses.count
  const pool = new (options.isTraced ? TracedPool : pg.Pool)({
    connectionString: options.url,
    max: options.maxPoolSize || Number.POSITIVE_INFINITY,
    application_name: options.applicationName,
    connectionTimeoutMillis: connectWithinMs,
    idleTimeoutMillis: 30_000,
    // A pooler in transaction mode refuses limits of a session.
    ...(options.pooler !== 'transaction' && sessionLimits(statementWithinMs)),
    // The server enforces its own limit; this one is for a silent server.
    ...(statementWithinMs > 0 ? { query_timeout: statementWithinMs + 2_000 } : {}),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: { getTypeParser },
    Client: class extends Client {
      constructor(config?: pg.ClientConfig) {
        super({ ...config, connectionString: addresses.current, connectionTimeoutMillis: addressWithinMs }, hooks)
      }
    },
    ...(addresses.count > 1 && {
      onConnect: async (client) => {
        await requireWrites(client, addressWithinMs)
        recordHost(client as pg.Client)
      },
    }),
  })
  if (addresses.count > 1) attemptEachAddress(pool, addresses)
  // A broken connection fails its running statement. Between two statements of a transaction it has none, and without a
  // listener its error would end the process.
  const logLoss = (err: Error) => {
    // The pool reports itself closed before its connections have ended.
    if (!pool.ending) options.log.warn({ err }, 'database connection lost')
  }
  pool.on('error', () => {}) // the connection's own listener logs it
  pool.on('connect', (client) => {
    // The server's last message and the end of the connection are two errors about one loss.
    client.once('error', logLoss).on('error', () => {})
  })
  pool.on('release', (err, client) => {
    if (!(client instanceof PreparingClient)) return
    if (err) client.judgeFailure(err)
    // The pool keeps no connection that is ending.
    if (client.isUseless) client.end().catch(() => {})
  })
  const forgetPool = recordOpenPool(options.url, pool)
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

const sessionLimits = (statementWithinMs: number) => ({
  // pg leaves out a number 0, and the limit of the role would apply.
  statement_timeout: String(statementWithinMs) as unknown as number,
  // A second longer: a statement that waits for locks of a silent client's transaction must end first. Otherwise it
  // would get the locks, and hold them as long again if its client is silent too.
  idle_in_transaction_session_timeout: STATEMENT_WITHIN_MS + 1_000,
})

/** Runs the work of a command, past the pooler: it may take longer than the limits of the role. */
export async function withDatabase<DB, Result>(
  options: DatabaseOptions,
  work: (db: Kysely<DB>) => Promise<Result>,
): Promise<Result> {
  // The command itself reports an unreachable database, in one line.
  const address = pastPooler(options)
  const { db, pool, close } = openDatabase<DB>({ ...address, log: options.log.child({}, { level: 'error' }) })
  try {
    await checkPooler(pool, address)
    return await work(db)
  } finally {
    await close()
  }
}

/** Table prefix of a namespace, for SQL that Kysely does not build (migrations, limiter tables). */
export const tablePrefix = (namespace: string | undefined) => (namespace ? `${namespace}_` : '')

/** Parses bigint as a number: the columns are counters and sizes far below 2^53. */
function getTypeParser(oid: number, format?: 'text' | 'binary') {
  return oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format)
}

const withoutStack = ({ name, message, ...rest }: Error) => ({ ...rest, type: name, message })

/** Calls `work` for the first error of each interval. */
function reportSome(work: (err: Error) => void): (err: Error) => void {
  let lastAt = Number.NEGATIVE_INFINITY
  return (err) => {
    const now = performance.now()
    if (now - lastAt < REPORT_EVERY_MS) return
    lastAt = now
    work(err)
  }
}

const REACHABLE_WITHIN_MS = 60_000

/** Waits until the server accepts connections; throws the last refusal after a minute. */
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

/** A jsonb value; pg would send a JavaScript array as a PostgreSQL array. */
export const jsonb = <Value>(value: Value) => sql<Value>`${JSON.stringify(value)}::jsonb`
