// Actions at the end of a transaction. Before the commit: statements about everything that it changed. After the
// commit: log lines and the like, which must not report a change that was rolled back.
import { type Kysely, PostgresDialect, type PostgresDialectConfig, PostgresDriver, type Transaction } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: transactions of every service's schema
export type AnyTransaction = Transaction<any>

type Connection = Parameters<PostgresDriver['rollbackTransaction']>[0]

const waiting = new WeakMap<object, (() => void)[]>()

/** Runs `action`, which must not throw, after the commit, and never after a rollback; outside a transaction at once. */
export async function afterCommit<DB>(db: Kysely<DB>, action: () => void): Promise<void> {
  if (!db.isTransaction) return action()
  await db.getExecutor().provideConnection(async (connection) => {
    waiting.set(connection, [...(waiting.get(connection) ?? []), action])
  })
}

const last = new WeakMap<object, (() => Promise<void>)[]>()

/** Runs `action` as the last of the transaction. Its failure rolls the transaction back. */
export async function beforeCommit(trx: AnyTransaction, action: () => Promise<void>): Promise<void> {
  await trx.getExecutor().provideConnection(async (connection) => {
    last.set(connection, [...(last.get(connection) ?? []), action])
  })
}

class CommitDriver extends PostgresDriver {
  override async commitTransaction(connection: Connection): Promise<void> {
    const final = last.get(connection) ?? []
    last.delete(connection)
    for (const action of final) await action()
    const actions = waiting.get(connection) ?? []
    waiting.delete(connection)
    await super.commitTransaction(connection)
    for (const action of actions) action()
  }

  override async rollbackTransaction(connection: Connection): Promise<void> {
    last.delete(connection)
    waiting.delete(connection)
    await super.rollbackTransaction(connection)
  }
}

export class CommitDialect extends PostgresDialect {
  readonly config: PostgresDialectConfig
  constructor(config: PostgresDialectConfig) {
    super(config)
    this.config = config
  }
  override createDriver() {
    return new CommitDriver(this.config)
  }
}
