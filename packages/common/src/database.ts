import { createHash } from 'node:crypto'
import type { Attributes } from '@opentelemetry/api'
import { Kysely, OperationNodeTransformer, type RawBuilder, type SchemableIdentifierNode, sql } from 'kysely'
import pg from 'pg'
import type { Logger } from 'pino'
import { CommitDialect } from './after-commit.ts'
import { currentDeadline, regardlessOfDeadline } from './deadline.ts'
import { databaseAttributes, tracedStatement } from './traced-statement.ts'
import { isTraced } from './tracing.ts'

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

/** Longest wait for the answer to a check: probes and idle connections cost nothing to give up. */
const CHECK_WITHIN_MS = 2_000

/** A pool reports refused connections once in this time, not for each request. */
const REPORT_REFUSALS_EVERY_MS = 60_000

export interface Database<DB> {
  db: Kysely<DB>
  pool: pg.Pool
  /** Ends the pool too where no query was built, which the query builder alone would leave open. */
  close(): Promise<void>
}

/** A pool and its query builder. The pool replaces broken connections by itself, so a restarted server needs nothing. */
export function openDatabase<DB>(options: DatabaseOptions): Database<DB> {
  const { statementWithinMs = STATEMENT_WITHIN_MS, connectWithinMs = CONNECT_WITHIN_MS } = options
  const hooks: ClientHooks = {
    names: new StatementNames(),
    noteRefusal: onceIn(REPORT_REFUSALS_EVERY_MS, (err) => {
      if (!pool.ending) options.log.warn({ err }, 'database connection failed')
    }),
    noteLostCancel: (err) => options.log.warn({ err }, 'a statement could not be cancelled'),
    noteUseless: () => checkIdleConnections(options.url),
  }
  const Client = options.isTraced ? TracedClient : PreparingClient
  const pool = new (options.isTraced ? TracedPool : pg.Pool)({
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
  const siblings = openPools.get(options.url) ?? new Set()
  openPools.set(options.url, siblings.add(pool))
  const plugins = options.namespace ? [new TablePrefixPlugin(`${options.namespace}_`, options.tables ?? [])] : []
  const db = new Kysely<DB>({ dialect: new CommitDialect({ pool }), plugins })
  return {
    db,
    pool,
    close: async () => {
      siblings.delete(pool)
      if (siblings.size === 0) openPools.delete(options.url)
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
  /** The server behind it takes no writes, or is silent: the pool does not get it back. */
  isUseless = false
  readonly hooks: ClientHooks

  constructor(config: pg.ClientConfig | undefined, hooks: ClientHooks) {
    super(config)
    this.hooks = hooks
  }

  // biome-ignore lint/suspicious/noExplicitAny: a promise or a callback, which is how a pool asks
  override connect(...args: any[]): any {
    const [callback] = args
    if (!callback) return super.connect()
    super.connect((error: Error | undefined) => {
      if (error) {
        refusedConnections.add(error)
        this.hooks.noteRefusal(error)
      }
      callback(error)
    })
  }

  // biome-ignore lint/suspicious/noExplicitAny: pg declares a dozen overloads, all of which must pass through
  override query(...args: any[]): any {
    const deadline = currentDeadline()
    // With a callback it is the pool that asks, for whom is not known: a queue of requests shares its connections.
    if (!deadline || typeof args[0] !== 'string' || typeof args.at(-1) === 'function') return this.send(...args)
    if (deadline.isOver) {
      if (args[0] === 'rollback') return this.send(...args)
      return Promise.reject(new Error('the request was over before this statement'))
    }
    const abandon = () => {
      abandonStatement(this)
      this.noteUseless()
    }
    deadline.running.add(abandon)
    return this.send(...args).finally(() => deadline.running.delete(abandon))
  }

  /** Decides by an error of its statement whether the connection can serve any more. */
  noteFailure(error: unknown): void {
    if (this.isUseless) return
    const { code, message } = error as { code?: unknown; message?: unknown }
    if (message === READ_TIMEOUT) abandonStatement(this)
    else if (typeof code !== 'string' || !USELESS_STATES.test(code)) return
    this.noteUseless()
  }

  private noteUseless(): void {
    this.isUseless = true
    this.hooks.noteUseless()
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  private send(...args: any[]): any {
    const sent = this.sendNamed(...args)
    // With a callback the pool hands the error back when it releases the connection.
    if (sent instanceof Promise) sent.catch((error) => this.noteFailure(error))
    return sent
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  private sendNamed(...args: any[]): any {
    const [query, values, ...rest] = args
    if (typeof query === 'string' && Array.isArray(values) && values.length > 0) {
      const name = this.hooks.names.of(query)
      // @ts-expect-error the overloads cannot be spelled for a pass-through
      if (name) return super.query({ name, text: query, values }, undefined, ...rest)
    }
    // @ts-expect-error as above
    return super.query(...args)
  }
}

/** What the connections of a pool share, and report. */
interface ClientHooks {
  names: StatementNames
  noteRefusal(err: Error): void
  /** A statement that was abandoned may run on, until its time limit. */
  noteLostCancel(err: Error): void
  noteUseless(): void
}

/** What pg calls a statement whose answer did not come. */
const READ_TIMEOUT = 'Query read timeout'

/**
 * SQLSTATE of a server that takes no writes (a primary that was replaced while its connections stayed open), is going down, or
 * has lost its own connection, as a pooler does. The next connection may lead to another server.
 */
const USELESS_STATES = /^(25006|57P0[123]|08...)$/

/** Open pools by address of their database. */
const openPools = new Map<string, Set<pg.Pool>>()
const poolsBeingChecked = new WeakSet<pg.Pool>()

/**
 * Gives up the idle connections to a database behind which no server answers or takes writes. Where one of them was found
 * useless the others may be so too, and each would cost a request its whole time limit to find out.
 */
export function checkIdleConnections(url = ''): void {
  for (const pool of openPools.get(url) ?? []) void regardlessOfDeadline(() => checkIdle(pool))
}

async function checkIdle(pool: pg.Pool): Promise<void> {
  if (poolsBeingChecked.has(pool)) return
  poolsBeingChecked.add(pool)
  await Promise.allSettled(Array.from({ length: pool.idleCount }, () => checkConnection(pool)))
  poolsBeingChecked.delete(pool)
}

/** Whether a connection of the pool leads to a server that takes writes; gives it up otherwise. Throws when there is none. */
async function checkConnection(pool: pg.Pool): Promise<boolean> {
  const client = await pool.connect()
  const isUseful = await takesWrites(client, CHECK_WITHIN_MS).catch(() => false)
  client.release(!isUseful)
  return isUseful
}

/** Whether the database can be reached and takes writes. A connection that shows otherwise is given up, with all that are like it. */
export async function isWritable(pool: pg.Pool): Promise<boolean> {
  const isUseful = await checkConnection(pool).catch(() => undefined)
  if (isUseful === false) checkIdleConnections(pool.options.connectionString)
  return isUseful === true
}

/** Whether the server takes writes: not a standby, nor a primary that was made read-only. Throws when it does not answer. */
export async function takesWrites(client: pg.ClientBase, withinMs: number): Promise<boolean> {
  const text = `select current_setting('transaction_read_only') = 'off' as writes`
  const { rows } = await client.query({ text, query_timeout: withinMs } as pg.QueryConfig)
  return rows[0].writes
}

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

/** Gives every statement of a request or job a span; those of the process itself have none. */
class TracedClient extends PreparingClient {
  private readonly attributes: Attributes
  constructor(config: pg.ClientConfig, hooks: ClientHooks) {
    super(config, hooks)
    this.attributes = databaseAttributes(config.connectionString)
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  override query(...args: any[]): any {
    if (typeof args[0] !== 'string' || typeof args.at(-1) === 'function' || !isTraced()) return super.query(...args)
    return tracedStatement(args[0], this.attributes, () => super.query(...args))
  }
}

/** The same for statements that are sent without a connection of their own: only here it is known for which request. */
class TracedPool extends pg.Pool {
  private readonly attributes: Attributes
  constructor(config: pg.PoolConfig) {
    super(config)
    this.attributes = databaseAttributes(config.connectionString)
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  override query(...args: any[]): any {
    const [query] = args
    const text = typeof query === 'string' ? query : query?.text
    // @ts-expect-error the overloads cannot be spelled for a pass-through
    if (typeof text !== 'string' || typeof args.at(-1) === 'function' || !isTraced()) return super.query(...args)
    // @ts-expect-error as above
    return tracedStatement(text, this.attributes, () => super.query(...args))
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
    if (!isSent) client.hooks.noteLostCancel(failure)
  })
  if (host.startsWith('/')) wire.connect(`${host}/.s.PGSQL.${port}`)
  else wire.connect(port, host)
  client.end().catch(() => {})
}

const MAX_STATEMENT_NAMES = 500

/**
 * Names of statements are hashes of their texts. A pooler that does not track them lends a connection of the server to one
 * process after the other: with any other name one would run the statement of another without an error.
 */
class StatementNames {
  private readonly known = new Map<string, string>()

  of(text: string): string | undefined {
    const known = this.known.get(text)
    if (known || this.known.size >= MAX_STATEMENT_NAMES) return known
    const name = createHash('sha256').update(text).digest('base64url')
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

/** Errors of connections that were never open. Whatever their code, they say nothing of the statement that waited for one. */
const refusedConnections = new WeakSet<Error>()

/** Whether the database could not be reached, as opposed to a statement it refused. Such requests are answered 503. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (refusedConnections.has(error)) return true
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
