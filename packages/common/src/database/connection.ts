// A connection of a pool: it names statements, cancels those whose request has ended, and drops itself when it is
// useless. A connection that leads to a server without writes never returns to the pool.
import { createHash } from 'node:crypto'
import type { Attributes } from '@opentelemetry/api'
import pg from 'pg'
import { currentDeadline } from '../request-deadline.ts'
import { isTraced } from '../telemetry/spans.ts'
import { cancelStatement } from './cancel-statement.ts'
import { recordRefusedConnection } from './errors.ts'
import { recordRefusedStatement } from './missing-right.ts'
import { databaseAttributes, tracedStatement } from './statement-spans.ts'

export interface ClientHooks {
  names: StatementNames
  onRefusal(err: Error): void
  /** A statement that was to be cancelled may run until its time limit. */
  onLostCancel(err: Error): void
  /** `error`: the server's, if that revealed it. */
  onUseless(error?: Error): void
  onLostName(err: Error): void
}

const READ_TIMEOUT = 'Query read timeout'

/**
 * Comment in a statement that PostgreSQL plans for each set of values, because they decide the plan: it gets no name.
 */
export const PLANNED_EACH_TIME = '/* planned each time */'

/** SQLSTATE of a server that is read-only, stopping, or a pooler without one; a reconnect may reach another. */
const USELESS_STATES = /^(25006|57P0[1-5]|08...)$/

/** SQLSTATE of a statement name that the server's session lacks, or has already. */
const LOST_NAME_STATES = /^(26000|42P05)$/

/**
 * Names every parametrised statement, so that PostgreSQL parses and plans it once per connection. Query builders emit a
 * bounded set of texts; past the bound (a list of varying length) statements stay unnamed.
 */
export class PreparingClient extends pg.Client {
  /** Whether its server accepts no writes or is silent; the pool drops it. */
  isUseless = false
  readonly hooks: ClientHooks

  constructor(config: pg.ClientConfig | undefined, hooks: ClientHooks) {
    super(config)
    this.hooks = hooks
  }

  // biome-ignore lint/suspicious/noExplicitAny: a promise, or the callback of a pool
  override connect(...args: any[]): any {
    const [callback] = args
    if (!callback) return super.connect()
    super.connect((error: Error | undefined) => {
      if (error) {
        // An untrusted certificate or a missing password is a wrong setting, not an outage.
        if (error instanceof pg.DatabaseError) recordRefusedConnection(error)
        this.hooks.onRefusal(error)
      }
      callback(error)
    })
  }

  // biome-ignore lint/suspicious/noExplicitAny: passes pg's dozen overloads through
  override query(...args: any[]): any {
    const deadline = currentDeadline()
    // A callback comes from the pool, for an unknown request.
    if (!deadline || typeof args[0] !== 'string' || typeof args.at(-1) === 'function') return this.send(...args)
    if (deadline.hasExpired) {
      if (args[0] === 'rollback') return this.send(...args)
      return Promise.reject(new Error('the request expired before this statement'))
    }
    const cancel = () => {
      cancelStatement(this, this.hooks.onLostCancel)
      this.markUseless()
    }
    deadline.running.add(cancel)
    return this.send(...args).finally(() => deadline.running.delete(cancel))
  }

  /** Decides from a statement's error whether the connection is still useful. */
  judgeFailure(error: unknown): void {
    if (this.isUseless || !(error instanceof Error)) return
    const code = error instanceof pg.DatabaseError ? (error.code ?? '') : ''
    if (LOST_NAME_STATES.test(code)) this.hooks.onLostName(error)
    if (error.message === READ_TIMEOUT) cancelStatement(this, this.hooks.onLostCancel)
    else if (!USELESS_STATES.test(code)) return
    this.markUseless(error)
  }

  private markUseless(error?: Error): void {
    this.isUseless = true
    this.hooks.onUseless(error)
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  private send(...args: any[]): any {
    const sent = this.sendNamed(...args)
    // The pool reports a callback's error when it releases the connection.
    if (sent instanceof Promise) {
      sent.catch((error) => {
        this.judgeFailure(error)
        if (typeof args[0] === 'string') recordRefusedStatement(error, args[0])
      })
    }
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

/** Adds spans to `pool.query`: its connection no longer knows the request. */
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

/** Names statements by a hash: behind a pooler, any other name could silently run another process's statement. */
export class StatementNames {
  private readonly known = new Map<string, string>()

  of(text: string): string | undefined {
    const known = this.known.get(text)
    if (known || this.known.size >= MAX_STATEMENT_NAMES || text.includes(PLANNED_EACH_TIME)) return known
    const name = createHash('sha256').update(text).digest('base64url')
    this.known.set(text, name)
    return name
  }
}
