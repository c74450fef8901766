import { isDatabaseUnavailable, isInterrupted, isMissingTable } from '@services/common/database/errors'
import { createLogger } from '@services/common/telemetry/logger'
import type { Config } from '../../../config.ts'
import { createEncryption } from '../../../core/keys/encryption.ts'
import { countApart, type KeyRows, listRows, missingKeys, rowsByKey, sentence } from '../../../core/keys/sealed-rows.ts'

const CONNECT_WITHIN_MS = 2_000

/** Compares the settings with the keys that rows need, for `config check`. Passes without a database or its tables. */
export async function checkKeysOfRows(config: Config): Promise<{ problems: string[]; warnings: string[] }> {
  const encryption = createEncryption(config.encryption)
  try {
    const log = createLogger({ name: 'auth', level: 'panic', toStderr: true })
    const counted = await countApart(config.database, log, { connectWithinMs: CONNECT_WITHIN_MS })
    const figures = rowsByKey(encryption, counted)
    return { problems: missingKeys(encryption, figures).map(sentence), warnings: rowsUnderSecret(config, figures) }
  } catch (error) {
    const isAway = isMissingTable(error) || (isDatabaseUnavailable(error) && !isInterrupted(error))
    const problem = `the encrypted rows could not be counted: ${(error as Error).message}`
    return { problems: isAway ? [] : [problem], warnings: [] }
  }
}

/** Warns of rows that AUTH_JWT_SECRET encrypted before a key of its own did. */
function rowsUnderSecret({ encryption: { keys }, jwt }: Config, figures: readonly KeyRows[]): string[] {
  const isSecret = keys.some(({ id, secret }) => id === null && secret === jwt.secret)
  const rows = figures.filter(({ key_id: id, known, rows }) => id === null && known && rows > 0)
  if (keys[0].id === null || !isSecret || rows.length === 0) return []
  const tables = listRows(Object.fromEntries(rows.map(({ table, rows }) => [table, rows])))
  return [`AUTH_JWT_SECRET encrypts ${tables}: before you replace it, run keys encryption rotate`]
}
