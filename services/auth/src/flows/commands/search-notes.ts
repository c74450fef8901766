import { tablePrefix, withDatabase } from '@services/common/database/pool'
import { createLogger } from '@services/common/telemetry/logger'
import type { Config } from '../../config.ts'
import { describeSearch } from '../../db/search-users.store.ts'
import { type DB, TABLES } from '../../db/tables.ts'

const CONNECT_WITHIN_MS = 2_000

/** Describes for `config check` how far a search for users goes; nothing if the database cannot be reached. */
export async function searchNotes({ database }: Config): Promise<string[]> {
  const log = createLogger({ name: 'auth', level: 'panic', toStderr: true })
  const options = { ...database, connectWithinMs: CONNECT_WITHIN_MS, applicationName: 'auth cli', log, tables: TABLES }
  const prefix = tablePrefix(database.namespace)
  const describe = withDatabase<DB, string | undefined>(options, (db) => describeSearch(db, prefix))
  const note = await describe.catch(() => undefined)
  return note ? [note] : []
}
