import { Kysely, OperationNodeTransformer, type RawBuilder, type SchemableIdentifierNode, sql } from 'kysely'
import pg from 'pg'
import type { Logger } from 'pino'
import { CommitDialect } from './after-commit.ts'
import { currentDeadline } from './deadline.ts'

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
  /** Longest wait for a connection of the pool. */
  connectWithinMs?: number | undefined
}

/** How long a request waits for a connection before it is answered 503. */
const CONNECT_WITHIN_MS = 5_000

/** Ends a statement the server would otherwise run on after the caller gave up; no query of ours needs a second. */
const STATEMENT_WITHIN_MS = 15_000

export interface Database<DB> {
  db: Kysely<DB>
  pool: pg.Pool
  /** Ends the pool too where no query was built, which the query builder alone would leave open. */
  close(): Promise<void>
}

/** A pool and its query builder. The pool replaces broken connections by itself, so a restarted server needs nothing. */
export function openDatabase<DB>(options: DatabaseOptions): Database<DB> {
  const { statementWithinMs = STATEMENT_WITHIN_MS, connectWithinMs = CONNECT_WITHIN_MS } = options
  const names = new StatementNames()
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.maxPoolSize || Number.POSITIVE_INFINITY,
    application_name: options.applicationName,
    connectionTimeoutMillis: connectWithinMs,
    idleTimeoutMillis: 30_000,
    statement_timeout: statementWithinMs,
    idle_in_transaction_session_timeout: STATEMENT_WITHIN_MS,
    // The server ends a statement by itself; this is for a server that is not heard of any more.
    ...(statementWithinMs > 0 ? { query_timeout: statementWithinMs + 2_000 } : {}),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: { getTypeParser },
    Client: PreparingClient,
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
    const preparing = client as unknown as PreparingClient
    preparing.noteLostCancel = (err) => options.log.warn({ err }, 'a statement could not be cancelled')
    preparing.names = names
  })
  const plugins = options.namespace ? [new TablePrefixPlugin(`${options.namespace}_`, options.tables ?? [])] : []
  const db = new Kysely<DB>({ dialect: new CommitDialect({ pool }), plugins })
  return {
    db,
    pool,
    close: async () => {
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
  const { db, close } = openDatabase<DB>(options)
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

/**
 * Sends every parametrised statement as a named one, so that PostgreSQL parses and plans it once per connection.
 * Query builders emit a bounded set of texts; past the bound (a list of varying length in a loop) it stays unnamed.
 */
class PreparingClient extends pg.Client {
  /** Told when a statement that was abandoned may run on, until its time limit. */
  noteLostCancel: (err: Error) => void = () => {}
  /** Shared by the connections of a pool. */
  names: StatementNames | undefined

  // biome-ignore lint/suspicious/noExplicitAny: pg declares a dozen overloads, all of which must pass through
  override query(...args: any[]): any {
    const deadline = currentDeadline()
    // With a callback it is the pool that asks, for whom is not known: a queue of requests shares its connections.
    if (!deadline || typeof args[0] !== 'string' || typeof args.at(-1) === 'function') return this.send(...args)
    if (deadline.isOver) {
      if (args[0] === 'rollback') return this.send(...args)
      return Promise.reject(new Error('the request was over before this statement'))
    }
    const abandon = () => abandonStatement(this)
    deadline.running.add(abandon)
    return this.send(...args).finally(() => deadline.running.delete(abandon))
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  private send(...args: any[]): any {
    const [query, values, ...rest] = args
    if (typeof query === 'string' && Array.isArray(values) && values.length > 0) {
      const name = this.names?.of(query)
      // @ts-expect-error the overloads cannot be spelled for a pass-through
      if (name) return super.query({ name, text: query, values }, undefined, ...rest)
    }
    // @ts-expect-error as above
    return super.query(...args)
  }
}

/** What pg's own clients do with their connection, which its types leave out. */
interface Wire extends pg.Connection {
  connect(port: number | string, host?: string): void
  requestSsl(): void
  cancel(processID: number, secretKey: number): void
}

/**
 * Ends a statement nobody waits for any more, and with it its transaction. A connection that is closed alone would not: a
 * statement that waits for a lock runs on and may commit. The connection goes too, so that a cancel request that comes too
 * late cannot meet somebody else's statement. The request goes over TLS where the connection does: a server behind a proxy
 * may take nothing else, and who reads the key could end statements too.
 */
function abandonStatement(client: PreparingClient): void {
  const { host, port, ssl, sslNegotiation, processID, secretKey } = client as unknown as {
    host: string
    port: number
    ssl: pg.ClientConfig['ssl']
    sslNegotiation: 'postgres' | 'direct'
    processID: number
    secretKey: number
  }
  const wire = new pg.Connection({ ssl, sslNegotiation } as pg.ConnectionConfig) as Wire
  let failure = new Error('the connection for the cancel request ended early')
  let isSent = false
  const send = () => {
    isSent = true
    wire.cancel(processID, secretKey)
    wire.stream.end()
  }
  const giveUp = setTimeout(() => wire.stream.destroy(new Error('no cancel request in time')), CONNECT_WITHIN_MS)
  wire.on('connect', () => {
    if (!ssl) send()
    else if (sslNegotiation !== 'direct') wire.requestSsl()
  })
  wire.on('sslconnect', send)
  wire.on('error', (error: Error) => {
    failure = error
  })
  wire.once('end', () => {
    clearTimeout(giveUp)
    if (!isSent) client.noteLostCancel(failure)
  })
  if (host.startsWith('/')) wire.connect(`${host}/.s.PGSQL.${port}`)
  else wire.connect(port, host)
  client.end().catch(() => {})
}

const MAX_STATEMENT_NAMES = 500

class StatementNames {
  private readonly known = new Map<string, string>()

  of(text: string): string | undefined {
    const known = this.known.get(text)
    if (known || this.known.size >= MAX_STATEMENT_NAMES) return known
    const name = `s${this.known.size}`
    this.known.set(text, name)
    return name
  }
}

class TablePrefixTransformer extends OperationNodeTransformer {
  readonly prefix: string
  readonly tables: ReadonlySet<string>
  constructor(prefix: string, tables: readonly string[]) {
    super()
    this.prefix = prefix
    this.tables = new Set(tables)
  }
  protected override transformSchemableIdentifier(node: SchemableIdentifierNode): SchemableIdentifierNode {
    if (node.schema || !this.tables.has(node.identifier.name)) return node
    return { ...node, identifier: { kind: 'IdentifierNode', name: this.prefix + node.identifier.name } }
  }
}

class TablePrefixPlugin {
  readonly transformer: TablePrefixTransformer
  constructor(prefix: string, tables: readonly string[]) {
    this.transformer = new TablePrefixTransformer(prefix, tables)
  }
  transformQuery(args: { node: Parameters<TablePrefixTransformer['transformNode']>[0] & object }) {
    // biome-ignore lint/suspicious/noExplicitAny: Kysely's plugin type names the union of all root nodes
    return this.transformer.transformNode(args.node) as any
  }
  async transformResult<Result>(args: { result: Result }) {
    return args.result
  }
}

/**
 * SQLSTATE classes and codes that say "not now": connection trouble, shutdown, start-up, too many connections, a statement
 * cut off by its time limit, a deadlock or conflict that another try resolves, a server that has just become a standby.
 */
const UNAVAILABLE_STATES = /^(08...|57P0[123]|57014|53300|25P03|25006|40P01|40001)$/
const UNAVAILABLE_ERRNO = /^(ECONNREFUSED|ECONNRESET|EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ENOENT)$/
const UNAVAILABLE_TEXT =
  /connection terminated|timeout exceeded when trying to connect|client has encountered a connection error|not queryable|query read timeout/i

/** Whether the database could not be reached, as opposed to a statement it refused. Such requests are answered 503. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, syscall } = error as { code?: unknown; syscall?: unknown }
  if (typeof code === 'string' && UNAVAILABLE_STATES.test(code)) return true
  if (typeof code === 'string' && UNAVAILABLE_ERRNO.test(code) && syscall !== 'open') return true
  if (error instanceof AggregateError) return error.errors.some(isDatabaseUnavailable)
  return UNAVAILABLE_TEXT.test(error.message) || isDatabaseUnavailable(error.cause)
}

/** SQLSTATE of a wrong user or password, of a database that does not exist, and of a right that is missing. */
const REFUSAL_STATES = /^(28...|3D000|42501)$/

/** Whether the database does not let this user in, or not do what a migration does: something that only an operator can mend. */
export function isDatabaseRefusal(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as { code?: unknown }
  if (typeof code === 'string' && REFUSAL_STATES.test(code)) return true
  return error.message === 'The server does not support SSL connections'
}

/** Whether a statement names a table that is not there: migrations are pending. */
export const isMissingTable = (error: unknown): boolean => (error as { code?: unknown } | undefined)?.code === '42P01'

/** Whether the database refused a row because a unique index already holds it; `constraint` names the index. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const { code, constraint: violated } = (error ?? {}) as { code?: string; constraint?: string }
  return code === '23505' && (constraint === undefined || (violated ?? '').endsWith(constraint))
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
      if (!isDatabaseUnavailable(err) || Date.now() > deadline) throw err
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
