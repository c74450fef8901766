// A connection of a pool: what it sends by name, what it does with statements whose caller is gone, and when it serves no more.
import { createHash } from 'node:crypto'
import type { Attributes } from '@opentelemetry/api'
import pg from 'pg'
import { abandonStatement } from './abandon-statement.ts'
import { noteRefusedConnection } from './database-errors.ts'
import { currentDeadline } from './deadline.ts'
import { databaseAttributes, tracedStatement } from './traced-statement.ts'
import { isTraced } from './tracing.ts'

/** State that the connections of a pool share, and their reports. */
export interface ClientHooks {
  names: StatementNames
  noteRefusal(err: Error): void
  /** A statement that was abandoned may run on, until its time limit. */
  noteLostCancel(err: Error): void
  /** `error`: what showed it, where it was the server. */
  noteUseless(error?: Error): void
  noteLostName(err: Error): void
}

/** Message of pg for a statement whose answer did not come. */
const READ_TIMEOUT = 'Query read timeout'

/**
 * SQLSTATE of a server that takes no writes (a primary that was replaced while its connections stayed open), is going down, or
 * has lost its own connection, as a pooler does. The next connection may lead to another server.
 */
const USELESS_STATES = /^(25006|57P0[1-5]|08...)$/

/** SQLSTATE of a statement whose name the connection of the server does not know, or knows already. */
const LOST_NAME_STATES = /^(26000|42P05)$/

/**
 * Sends every parametrised statement as a named one, so that PostgreSQL parses and plans it once per connection.
 * Query builders emit a bounded set of texts; past the bound (a list of varying length in a loop) it stays unnamed.
 */
export class PreparingClient extends pg.Client {
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
        // An untrusted certificate or a missing password is a mistake of the settings, which no waiting mends.
        if (error instanceof pg.DatabaseError) noteRefusedConnection(error)
        this.hooks.noteRefusal(error)
      }
      callback(error)
    })
  }

  // biome-ignore lint/suspicious/noExplicitAny: pg declares a dozen overloads, all of which must pass through
  override query(...args: any[]): any {
    const deadline = currentDeadline()
    // A callback means that the pool asks, for a request that is not known: all requests share its connections.
    if (!deadline || typeof args[0] !== 'string' || typeof args.at(-1) === 'function') return this.send(...args)
    if (deadline.isOver) {
      if (args[0] === 'rollback') return this.send(...args)
      return Promise.reject(new Error('the request was over before this statement'))
    }
    const abandon = () => {
      abandonStatement(this, this.hooks.noteLostCancel)
      this.noteUseless()
    }
    deadline.running.add(abandon)
    return this.send(...args).finally(() => deadline.running.delete(abandon))
  }

  /** Decides by an error of its statement whether the connection can serve any more. */
  noteFailure(error: unknown): void {
    if (this.isUseless || !(error instanceof Error)) return
    const code = error instanceof pg.DatabaseError ? (error.code ?? '') : ''
    if (LOST_NAME_STATES.test(code)) this.hooks.noteLostName(error)
    if (error.message === READ_TIMEOUT) abandonStatement(this, this.hooks.noteLostCancel)
    else if (!USELESS_STATES.test(code)) return
    this.noteUseless(error)
  }

  private noteUseless(error?: Error): void {
    this.isUseless = true
    this.hooks.noteUseless(error)
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  private send(...args: any[]): any {
    const sent = this.sendNamed(...args)
    // Where there is a callback, the pool hands the error back when it releases the connection.
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

/** Gives every statement of a request or job a span; those of the process itself have none. */
export class TracedClient extends PreparingClient {
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
export class TracedPool extends pg.Pool {
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

const MAX_STATEMENT_NAMES = 500

/**
 * Names of statements are hashes of their texts. A pooler that does not track them lends a connection of the server to one
 * process after the other: with any other name one would run the statement of another without an error.
 */
export class StatementNames {
  private readonly known = new Map<string, string>()

  of(text: string): string | undefined {
    const known = this.known.get(text)
    if (known || this.known.size >= MAX_STATEMENT_NAMES) return known
    const name = createHash('sha256').update(text).digest('base64url')
    this.known.set(text, name)
    return name
  }
}
