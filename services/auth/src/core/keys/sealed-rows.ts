// Figures of the sealed rows of a process: a metric, and the warning that a key is missing. They are counted at the start
// and from time to time, because a count reads whole tables. Tests: flows/commands/encryption/encryption-commands.test.ts.
import type { Reads } from '@services/common/database/replica'
import { startRounds } from '@services/common/housekeeping/rounds'
import type { Logger } from '@services/common/telemetry/logger'
import type { DB } from '../../db/tables.ts'
import { type Encryption, shownKeyId } from './encryption.ts'
import { countSealedRows, type SealedRows } from './sealed-rows.store.ts'

/** 300,000 rows take 0.2 s to count (measured). */
const COUNT_EVERY_MS = 15 * 60_000

export interface SealedRowsWatch {
  /** Counts once; logs keys that are missing since this count. */
  count(): Promise<void>
  /** The last count; undefined before the first one. */
  figures(): SealedRows[] | undefined
  /** A sentence for each key that is missing. */
  warnings(): string[]
  /** Counts now and from time to time, until the returned function is called. */
  start(): () => Promise<void>
}

export function watchSealedRows({
  reads,
  encryption,
  log,
}: {
  reads: Pick<Reads<DB>, 'current'>
  encryption: Pick<Encryption, 'keyIds'>
  log: Logger
}): SealedRowsWatch {
  let figures: SealedRows[] | undefined
  let logged = ''
  const missing = () => missingKeys(encryption, figures ?? [])
  const count = async () => {
    figures = await reads.current(countSealedRows)
    const ids = missing().map(({ id }) => id)
    if (ids.join() === logged) return
    logged = ids.join()
    for (const { id, tables } of missing()) log.error({ keyId: id, tables }, 'rows are sealed under an unknown key')
  }
  return {
    count,
    figures: () => figures,
    warnings: () => missing().map(sentence),
    start() {
      const countOrWarn = () => count().catch((err) => log.warn({ err }, 'sealed rows not counted'))
      return startRounds(countOrWarn, { log, firstMs: 0, everyMs: COUNT_EVERY_MS })
    },
  }
}

export interface MissingKey {
  id: string
  tables: Record<string, number>
}

/** Keys that rows name and that the settings lack. Ids that are none of ours count together. */
export function missingKeys({ keyIds }: Pick<Encryption, 'keyIds'>, figures: readonly SealedRows[]): MissingKey[] {
  const missing = new Map<string, Record<string, number>>()
  for (const { key_id: id, table, rows } of figures) {
    if (keyIds.includes(id)) continue
    const tables = missing.get(shownKeyId(id)) ?? {}
    missing.set(shownKeyId(id), { ...tables, [table]: (tables[table] ?? 0) + rows })
  }
  return [...missing].map(([id, tables]) => ({ id, tables }))
}

export const sentence = ({ id, tables }: MissingKey): string =>
  `AUTH_ENCRYPTION_KEYS lacks the key ${id}: ${Object.entries(tables)
    .map(([table, rows]) => `${rows} rows of ${table}`)
    .join(', ')} cannot be decrypted`
