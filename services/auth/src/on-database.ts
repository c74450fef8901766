import { withDatabase } from '@services/common/database'
import type { Logger } from '@services/common/logger'
import type { Kysely } from 'kysely'
import type { Config } from './config.ts'
import { type DB, TABLES } from './db/tables.ts'
import { startUp } from './start.ts'

export interface CommandDeps {
  config: Config
  log: Logger
  db: Kysely<DB>
}

/** Runs a command on the migrated database; `statementWithinMs` permits slower statements than a request's. */
export async function onDatabase<Result>(
  work: (deps: CommandDeps) => Promise<Result>,
  how: { statementWithinMs?: number } = {},
): Promise<Result> {
  const { config, log } = startUp({ toStderr: true })
  const options = { ...config.database, ...how, applicationName: 'auth cli', log, tables: TABLES }
  return withDatabase<DB, Result>(options, (db) => work({ config, log, db }))
}
