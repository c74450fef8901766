// Figures of the sealed rows of a process: a metric, and the warning that a key is missing. One process counts for all,
// because a count reads whole tables; each compares the last count with its own keys. Statements: sealed-rows.store.ts.
// Tests: flows/commands/encryption/encryption-commands.test.ts.
import { withDatabase } from '@services/common/database/pool'
import { startRounds } from '@services/common/housekeeping/rounds'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import type { Config } from '../../config.ts'
import { type DB, type SealedRows, TABLES } from '../../db/tables.ts'
import { type Encryption, shownKeyId, UNNAMED_KEY } from './encryption.ts'
import { SEALED_COLUMNS } from './sealed-columns.ts'
import { claimCount, countSealedRows, findCount, saveCount } from './sealed-rows.store.ts'

/** 300,000 rows take 0.2 s to count (measured). */
const COUNT_EVERY_MS = 15 * 60_000

/** Time limit of a count, and of the commands that count: long enough for a hundred million rows. */
export const COUNT_WITHIN_MS = 120_000

/** Reads one row. */
const READ_EVERY_MS = 60_000

export interface SealedRowsWatch {
  /** Reads the last count, and counts first if it is due; logs keys that are missing since then. */
  count(): Promise<void>
  /** Rows by key and table; undefined before the first count. */
  figures(): KeyRows[] | undefined
  /** Time of that count. */
  countedAt(): Date | undefined
  /** A public sentence, if a key is missing: it names none. */
  warnings(): string[]
  /** Counts now and from time to time, until the returned function is called. */
  start(): () => Promise<void>
}

/** Counts on a connection of its own, because a request's statement is cancelled sooner. */
export const countApart = (
  database: Config['database'],
  log: Logger,
  limits: { connectWithinMs?: number } = {},
): Promise<SealedRows[]> =>
  withDatabase<DB, SealedRows[]>(
    { ...database, ...limits, statementWithinMs: COUNT_WITHIN_MS, applicationName: 'auth count', log, tables: TABLES },
    countSealedRows,
  )

export function watchSealedRows({
  db,
  config,
  encryption,
  now,
  log,
}: {
  db: Kysely<DB>
  config: Pick<Config, 'database'>
  encryption: Pick<Encryption, 'keys'>
  now: () => Date
  log: Logger
}): SealedRowsWatch {
  let figures: KeyRows[] | undefined
  let countedAt: Date | undefined
  let logged = ''
  const missing = () => missingKeys(encryption, figures ?? [])
  const count = async () => {
    const at = now()
    const before = new Date(at.getTime() - COUNT_EVERY_MS)
    const last = await findCount(db)
    let counted = last?.counts
    let from = last?.claimed_at
    if ((!last || last.claimed_at <= before) && (await claimCount(db, { now: at, before }))) {
      counted = await countApart(config.database, log)
      await saveCount(db, counted, at)
      from = at
    }
    figures = counted ? rowsByKey(encryption, counted) : undefined
    countedAt = counted ? from : undefined
    const ids = missing().map(({ id }) => id)
    if (ids.join() === logged) return
    logged = ids.join()
    for (const { id, hasChanged, tables } of missing()) {
      log.error({ keyId: id, hasChanged, tables }, 'rows are sealed under an unknown key')
    }
  }
  return {
    count,
    figures: () => figures,
    countedAt: () => countedAt,
    warnings: () => (missing().length > 0 ? ['an encryption key is missing'] : []),
    start() {
      const countOrWarn = () => count().catch((err) => log.warn({ err }, 'sealed rows not counted'))
      return startRounds(countOrWarn, { log, firstMs: 0, everyMs: READ_EVERY_MS })
    },
  }
}

export interface KeyRows {
  /** null: the key without id; `?` for all ids that no key can have. */
  key_id: string | null
  table: string
  rows: number
  /** Whether the settings have this very key. */
  known: boolean
}

/** Sums a count by key and table. Known keys come first, and also with 0: that is what an operator waits for. */
export function rowsByKey({ keys }: Pick<Encryption, 'keys'>, counted: readonly SealedRows[]): KeyRows[] {
  const tables = [...new Set(SEALED_COLUMNS.map(({ table }) => table))]
  const sums = new Map<string, KeyRows>()
  const add = ({ id, table, rows }: Omit<SealedRows, 'check'>, known: boolean) => {
    const name = JSON.stringify([id, table, known])
    sums.set(name, { key_id: id, table, rows: rows + (sums.get(name)?.rows ?? 0), known })
  }
  for (const { id } of keys) for (const table of tables) add({ id, table, rows: 0 }, true)
  for (const row of counted) {
    add(
      row,
      keys.some(({ id, check }) => id === row.id && check === row.check),
    )
  }
  return [...sums.values()]
}

export interface MissingKey {
  id: string
  /** The settings have another key in its place. */
  hasChanged: boolean
  tables: Record<string, number>
}

/** Keys that rows need and that the settings lack. Ids that are none of ours count together. */
export function missingKeys({ keys }: Pick<Encryption, 'keys'>, figures: readonly KeyRows[]): MissingKey[] {
  const missing = new Map<string | null, MissingKey>()
  for (const { key_id: id, table, rows, known } of figures) {
    if (known) continue
    const hasChanged = keys.some((key) => key.id === id)
    const { tables } = missing.get(id) ?? { tables: {} }
    missing.set(id, { id: shownKeyId(id), hasChanged, tables: { ...tables, [table]: rows } })
  }
  return [...missing.values()]
}

export function sentence({ id, hasChanged, tables }: MissingKey): string {
  const key = id === shownKeyId(null) ? `${UNNAMED_KEY},` : `the key ${id} in AUTH_ENCRYPTION_KEYS`
  const fault = hasChanged ? `${key} has changed` : `AUTH_ENCRYPTION_KEYS lacks the key ${id}`
  return `${fault}: ${listRows(tables)} cannot be decrypted`
}

export const listRows = (tables: Readonly<Record<string, number>>): string =>
  Object.entries(tables)
    .map(([table, rows]) => `${rows} rows of ${table}`)
    .join(', ')
