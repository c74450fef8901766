import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import { type Migration, type MigrationInfo, Migrator } from 'kysely/migration'
import type { Logger } from 'pino'
import { type DatabaseOptions, openDatabase, tablePrefix, waitForDatabase } from './database.ts'
import { checkPooler, pastPooler } from './pooler.ts'

/**
 * Migrations are SQL files, `0001-name.sql`, applied in order and never edited once merged; `{{prefix}}` is the namespace's prefix.
 * Kysely runs all pending ones in one transaction under an advisory lock: replicas may start at once, and a failure leaves
 * nothing behind. Locks last until the last file is done, so `not valid` and `validate` help only in two versions. Nothing here
 * may take long or run `concurrently`.
 */
export interface MigrateOptions {
  // biome-ignore lint/suspicious/noExplicitAny: migrations run before the tables a type could describe exist
  db: Kysely<any>
  folder: string
  namespace?: string | undefined
}

/** Runs `work` on connections past the pooler and without a statement limit; waits for a server that is starting. */
export async function onMigrationConnection<Result>(
  database: Omit<DatabaseOptions, 'maxPoolSize' | 'statementWithinMs'>,
  folder: string,
  work: (migrations: MigrateOptions) => Promise<Result>,
): Promise<Result> {
  const address = pastPooler(database)
  const { db, pool, close } = openDatabase({ ...address, maxPoolSize: 2, statementWithinMs: 0 })
  try {
    await waitForDatabase(pool, database.log)
    await checkPooler(pool, address)
    return await work({ db, folder, namespace: database.namespace })
  } finally {
    await close()
  }
}

/** Applies pending migrations and logs each; throws the first failure, with nothing applied. */
export async function migrate(options: MigrateOptions, log: Logger): Promise<void> {
  const { error, results = [] } = await migratorOf(options).migrateToLatest()
  for (const result of results) {
    if (result.status === 'Success') log.info({ migration: result.migrationName }, 'migration applied')
    if (result.status === 'Error') log.error({ migration: result.migrationName }, 'migration failed')
  }
  if (error) throw error
}

export async function migrationStatus(options: MigrateOptions): Promise<readonly MigrationInfo[]> {
  return migratorOf(options).getMigrations()
}

export async function pendingSql(options: MigrateOptions): Promise<{ name: string; sql: string }[]> {
  const applied = (await migrationStatus(options)).filter(({ executedAt }) => executedAt).map(({ name }) => name)
  return (await readMigrations(options)).filter(({ name }) => !applied.includes(name))
}

function migratorOf(options: MigrateOptions): Migrator {
  const table = `${tablePrefix(options.namespace)}schema_migrations`
  const getMigrations = async (): Promise<Record<string, Migration>> => {
    const ours = (await readMigrations(options)).map(({ name, sql: text }): [string, Migration] => [
      name,
      { up: async (db) => void (await sql.raw(text).execute(db)) },
    ])
    return { ...(await newerMigrations(options, table)), ...Object.fromEntries(ours) }
  }
  return new Migrator({
    db: options.db,
    migrationTableName: table,
    migrationLockTableName: `${table}_lock`,
    provider: { getMigrations },
  })
}

/** Migrations of a newer version: Kysely refuses a database with unknown ones, and an older version must start after a roll-back. */
async function newerMigrations({ db }: MigrateOptions, table: string): Promise<Record<string, Migration>> {
  const { rows } = await sql<{ exists: boolean }>`select to_regclass(${table}) is not null as exists`.execute(db)
  if (!rows[0]?.exists) return {}
  const applied = await sql<{ name: string }>`select name from ${sql.table(table)}`.execute(db)
  return Object.fromEntries(applied.rows.map(({ name }) => [name, { up: async () => {} }]))
}

async function readMigrations({ folder, namespace }: MigrateOptions): Promise<{ name: string; sql: string }[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).toSorted()
  return Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(folder, file), 'utf8')
      return { name: basename(file, '.sql'), sql: text.replaceAll('{{prefix}}', tablePrefix(namespace)) }
    }),
  )
}
