import { withDatabase } from '@services/common/database/pool'
import { createLogger } from '@services/common/telemetry/logger'
import type { Config } from '../../../config.ts'
import { createEncryption } from '../../../core/keys/encryption.ts'
import { countSealedRows } from '../../../core/keys/sealed-rows.store.ts'
import { missingKeys, sentence } from '../../../core/keys/sealed-rows.ts'
import { type DB, TABLES } from '../../../db/tables.ts'

const CONNECT_WITHIN_MS = 2_000

/** Lists for `config check` the keys that rows need and the settings lack; none if the database cannot be reached. */
export async function missingKeysInDatabase({ database, encryption }: Config): Promise<string[]> {
  const log = createLogger({ name: 'auth', level: 'panic', toStderr: true })
  const options = { ...database, connectWithinMs: CONNECT_WITHIN_MS, applicationName: 'auth cli', log, tables: TABLES }
  const counted = await withDatabase<DB, Awaited<ReturnType<typeof countSealedRows>>>(options, countSealedRows).catch(
    () => [],
  )
  return missingKeys(createEncryption(encryption), counted).map(sentence)
}
