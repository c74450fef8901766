// Applies migrations (migration-files.ts), one process at a time, by an advisory lock. No request waits a second for a
// migration. A statement that does not get its lock soon gives up and is tried again. Behaviour:
// contract/database.md 6.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import type { Logger } from 'pino'
import { ConfigError } from '../config/variables.ts'
import { type DatabaseOptions, openDatabase, tablePrefix, waitForDatabase } from '../database/pool.ts'
import { pastPooler } from '../database/pooler.ts'
import {
  type LoneStatement,
  loneStatements,
  type MigrationFile,
  readMigrations,
  withoutComments,
} from './migration-files.ts'

// biome-ignore lint/suspicious/noExplicitAny: migrations run before the tables a type could describe exist
type AnyDatabase = Kysely<any>

export interface MigrateOptions {
  db: AnyDatabase
  folder: string
  namespace?: string | undefined
}

export interface MigrationState {
  name: string
  /** Undefined: a newer version's. */
  file?: MigrationFile | undefined
  appliedAt?: Date | undefined
}

/** Longest wait for a table's lock. All later requests for the table queue behind it. */
const LOCK_WITHIN_MS = 800

/**
 * Bound of the attempts: a long transaction has five minutes to end, since each attempt takes LOCK_WITHIN_MS +
 * LOCK_RETRY_MS.
 */
const MAX_LOCK_ATTEMPTS = 100
const LOCK_RETRY_MS = 2_200

/** Interval between two attempts to get the lock of a migration that another process runs. */
const POLL_MS = 200

/** SQLSTATE of a lock that was not granted in time, and of a deadlock. */
const LOCK_CONFLICT = /^(55P03|40P01)$/

const NO_SESSION =
  'DATABASE_POOLER=transaction needs DATABASE_DIRECT_URL for migrations, which hold a lock of their session'

/** Runs `work` on connections past the pooler and without a statement limit; waits for a server that is starting. */
export async function onMigrationConnection<Result>(
  database: Omit<DatabaseOptions, 'maxPoolSize' | 'statementWithinMs'>,
  folder: string,
  work: (migrations: MigrateOptions) => Promise<Result>,
): Promise<Result> {
  const address = pastPooler(database)
  if (address.pooler === 'transaction') throw new ConfigError([NO_SESSION])
  const { db, pool, close } = openDatabase({ ...address, maxPoolSize: 2, statementWithinMs: 0 })
  try {
    await waitForDatabase(pool, database.log)
    return await work({ db, folder, namespace: database.namespace })
  } finally {
    await close()
  }
}

/**
 * Applies pending migrations and logs each; throws the first failure. Earlier ones stay applied, and the next run
 * resumes there: in a file that runs alone with its first statement.
 */
export async function migrate(options: MigrateOptions, log: Logger): Promise<void> {
  if ((await pendingMigrations(options)).length === 0) return
  const table = tableOf(options)
  await options.db.connection().execute((db) =>
    holdingLock(db, table, log, async () => {
      // Even `if not exists` needs the right to create tables.
      if (!(await exists(db, table))) {
        await sql`create table ${sql.table(table)} (
          name varchar(255) primary key, timestamp varchar(255) not null)`.execute(db)
      }
      // Another process may have applied some meanwhile.
      const pending = await pendingMigrations({ ...options, db })
      for (const file of pending) await apply(db, table, file, log.child({ migration: file.name }))
    }),
  )
}

/** Lists the migrations of this version and those of a newer one that the database has, in their order. */
export async function migrationStates(options: MigrateOptions): Promise<MigrationState[]> {
  const files = await readMigrations(options.folder, options.namespace)
  const applied = await appliedMigrations(options.db, tableOf(options))
  const names = new Set([...files.map(({ name }) => name), ...applied.keys()])
  return [...names].toSorted().map((name) => ({
    name,
    file: files.find((file) => file.name === name),
    appliedAt: applied.get(name),
  }))
}

/** Throws for one that precedes an applied migration, so that all databases have the same order. */
export async function pendingMigrations(options: MigrateOptions): Promise<MigrationFile[]> {
  const states = await migrationStates(options)
  const pending = states.flatMap(({ file, appliedAt }) => (file && !appliedAt ? [file] : []))
  const newest = states.findLast(({ appliedAt }) => appliedAt)
  const [first] = pending
  if (first && newest && first.name < newest.name) {
    throw new Error(`migration ${first.name} cannot be applied: ${newest.name}, which follows it, is applied already`)
  }
  return pending
}

const tableOf = ({ namespace }: MigrateOptions) => `${tablePrefix(namespace)}schema_migrations`

async function appliedMigrations(db: AnyDatabase, table: string): Promise<Map<string, Date>> {
  if (!(await exists(db, table))) return new Map()
  const applied = await sql<{ name: string; timestamp: string }>`
    select name, timestamp from ${sql.table(table)}`.execute(db)
  return new Map(applied.rows.map(({ name, timestamp }) => [name, new Date(timestamp)]))
}

async function exists(db: AnyDatabase, table: string): Promise<boolean> {
  const { rows } = await sql<{ exists: boolean }>`select to_regclass(${table}) is not null as exists`.execute(db)
  return rows[0]?.exists === true
}

async function apply(db: AnyDatabase, table: string, file: MigrationFile, log: Logger): Promise<void> {
  const record = (trx: AnyDatabase) =>
    sql`insert into ${sql.table(table)} values (${file.name}, ${new Date().toISOString()})`.execute(trx)
  try {
    if (file.isAlone) {
      log.info('migration runs alone')
      for (const statement of loneStatements(file.sql)) await runAlone(db, statement, log)
      await record(db)
    } else {
      await withLockTimeout(db, LOCK_WITHIN_MS, log, () =>
        db.transaction().execute(async (trx) => {
          await sql.raw(file.sql).execute(trx)
          await record(trx)
        }),
      )
    }
  } catch (err) {
    log.error('migration failed')
    throw err
  }
  log.info('migration applied')
}

async function runAlone(db: AnyDatabase, statement: LoneStatement, log: Logger): Promise<void> {
  if (statement.condition && !(await isTrue(db, statement.condition))) {
    return log.info({ condition: statement.condition }, 'statement of a migration left out')
  }
  // No request waits for the lock of these, and they may wait for a vacuum that takes minutes.
  const isHarmless = /\bconcurrently\b|\bvalidate constraint\b|^analyze\b/im.test(withoutComments(statement.sql))
  const lockWithinMs = isHarmless ? 0 : LOCK_WITHIN_MS
  const run = () =>
    withLockTimeout(db, lockWithinMs, log, async () => {
      await dropInvalidIndex(db, statement.sql)
      return sql.raw(statement.sql).execute(db)
    })
  let changed: bigint | undefined
  do changed = (await run()).numAffectedRows
  while (statement.isRepeated && changed !== 0n)
}

const isTrue = async (db: AnyDatabase, condition: string) =>
  (await sql<{ holds: boolean }>`select (${sql.raw(condition)}) as holds`.execute(db)).rows[0]?.holds === true

/** Drops the remains of a failed concurrent build, which `if not exists` would keep. */
async function dropInvalidIndex(db: AnyDatabase, statement: string): Promise<void> {
  const [, name] = /create (?:unique )?index concurrently if not exists (\w+)/i.exec(statement) ?? []
  if (!name) return
  const isInvalid = `exists (select from pg_index where indexrelid = to_regclass('${name}') and not indisvalid)`
  if (await isTrue(db, isInvalid)) await sql`drop index concurrently ${sql.table(name)}`.execute(db)
}

/** Repeats `work` while it gets no lock within the time. */
async function withLockTimeout<Result>(
  db: AnyDatabase,
  lockWithinMs: number,
  log: Logger,
  work: () => Promise<Result>,
): Promise<Result> {
  await sql`select set_config('lock_timeout', ${String(lockWithinMs)}, false)`.execute(db)
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (err) {
      const isConflict = LOCK_CONFLICT.test(String((err as { code?: unknown }).code))
      if (!isConflict || attempt === MAX_LOCK_ATTEMPTS) throw err
      if (attempt === 1) log.warn({ err }, 'migration postponed: a transaction holds a lock')
      await sleep(LOCK_RETRY_MS)
    }
  }
}

/**
 * Polls for the lock: a session that waits inside PostgreSQL keeps a snapshot, which a concurrent index build waits
 * for.
 */
async function holdingLock(db: AnyDatabase, table: string, log: Logger, work: () => Promise<void>): Promise<void> {
  const lock = sql`hashtextextended(${table}, 0)`
  const isHeld = async () =>
    (await sql<{ held: boolean }>`select pg_try_advisory_lock(${lock}) as held`.execute(db)).rows[0]?.held === true
  for (let attempt = 0; !(await isHeld()); attempt++) {
    if (attempt === 0) log.info('another process migrates, waiting')
    await sleep(POLL_MS)
  }
  try {
    await work()
  } finally {
    // A lost connection has lost its locks.
    await sql`select pg_advisory_unlock(${lock})`.execute(db).catch(() => {})
  }
}
