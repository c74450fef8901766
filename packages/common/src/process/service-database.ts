// The database of a service: migrations, queue and replica, in the order of a start. All differences between
// services are members of `ServiceSchema`. Tests: test/cli.test.ts of each service, migrations and queue of common.
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { type Database, openDatabase, tablePrefix, waitForDatabase } from '../database/pool.ts'
import { checkPooler } from '../database/pooler.ts'
import { openReads, type Reads } from '../database/replica.ts'
import type { databaseSettings } from '../database/settings.ts'
import { type MigrateOptions, migrate, onMigrationConnection } from '../migrations/migrate.ts'
import { openQueue, type Queue } from '../queue/queue.ts'
import type { QueueDefinition } from '../queue/queue-definition.ts'

export interface ServiceSchema {
  /** Name of the service; the queue's schema is named after it. */
  name: string
  tables: readonly string[]
  /** Folder of the migrations. */
  migrations: URL
  queues: readonly QueueDefinition[]
}

interface Settings {
  database: ReturnType<typeof databaseSettings>
}

/** Runs `work` on a connection without the time limits of requests. */
export const withMigrations = <Result>(
  { name, tables, migrations }: ServiceSchema,
  { database }: Settings,
  log: Logger,
  work: (migrations: MigrateOptions) => Promise<Result>,
): Promise<Result> =>
  onMigrationConnection(
    { ...database, applicationName: `${name} migrate`, log, tables },
    fileURLToPath(migrations),
    work,
  )

/** Migrates the service's tables and the queue's. */
export async function migrateAll(schema: ServiceSchema, config: Settings, log: Logger): Promise<void> {
  await withMigrations(schema, config, log, (migrations) => migrate(migrations, log))
  const queue = await openServiceQueue(schema, config, log, { migrate: true, supervise: false })
  await queue.stop(1_000)
}

/** Opens the queue alone: a command has no need of the other parts. */
export const openServiceQueue = (
  { name, queues }: ServiceSchema,
  { database }: Settings,
  log: Logger,
  how: { migrate: boolean; supervise: boolean },
) => {
  const schema = `${tablePrefix(database.namespace)}${name}_queue`
  return openQueue({ ...database, schema, applicationName: name, queues, log, ...how })
}

interface OpenHow {
  /** Whether this process runs workers, and so supervises the queue. */
  isWorker: boolean
  connectWithinMs?: number | undefined
  statementWithinMs?: number | undefined
}

/**
 * Connects, migrates if configured, and opens queue and replica. `close` closes the database alone, after the others.
 */
export async function openServiceDatabase<DB>(
  schema: ServiceSchema,
  config: Settings & { telemetry: { tracing: boolean } },
  log: Logger,
  { isWorker, ...limits }: OpenHow,
): Promise<Database<DB> & { queue: Queue; reads: Reads<DB> }> {
  const { name: applicationName, tables } = schema
  const { database } = config
  const options = { ...database, applicationName, log, tables, isTraced: config.telemetry.tracing }
  const opened = openDatabase<DB>({ ...options, ...limits })
  try {
    await waitForDatabase(opened.pool, log)
    await checkPooler(opened.pool, database)
    if (database.migrateOnStart) await migrateAll(schema, config, log)
    const queue = await openServiceQueue(schema, config, log, { migrate: false, supervise: isWorker })
    return { ...opened, queue, reads: await openReads(opened.db, options) }
  } catch (error) {
    await opened.close()
    throw error
  }
}
