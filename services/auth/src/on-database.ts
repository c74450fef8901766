import { withDatabase } from '@services/common/database/pool'
import { openReads, type Reads } from '@services/common/database/replica'
import { type DB, TABLES } from './db/tables.ts'
import type { Deps } from './deps.ts'
import { startUp } from './start.ts'

export type CommandDeps = Pick<Deps, 'config' | 'log' | 'db'>

/** Runs a command on the migrated database; `statementWithinMs` permits slower statements than a request's. */
export async function onDatabase<Result>(
  work: (deps: CommandDeps) => Promise<Result>,
  how: { statementWithinMs?: number } = {},
): Promise<Result> {
  const { config, log } = startUp({ toStderr: true })
  const options = { ...config.database, ...how, applicationName: 'auth cli', log, tables: TABLES }
  return withDatabase<DB, Result>(options, (db) => work({ config, log, db }))
}

/** Runs a command that only reads, from the replica if there is one. */
export const onReads = (work: (reads: Reads<DB>, primary: CommandDeps['db']) => Promise<void>): Promise<void> =>
  onDatabase(async ({ config, log, db }) => {
    const reads = await openReads(db, { ...config.database, applicationName: 'auth cli', log, tables: TABLES })
    await work(reads, db).finally(() => reads.close())
  })
