// Moves sealed rows to the key that encrypts. It may run beside the service, and twice at a time. A row changes only
// while its text is the one that was read. Moved rows are left out, so an interrupted run continues where it ended.
// Tests: rotate.test.ts, rotate.slow.test.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Encryption } from '../../../core/keys/encryption.ts'
import { SEALED_COLUMNS, type SealedColumn } from '../../../core/keys/sealed-columns.ts'
import { listOutdated, type Resealed, replaceSealed, type SealedRow } from '../../../core/keys/sealed-rows.store.ts'
import type { Deps } from '../../../deps.ts'

/** Rows per statement: a lock lasts some milliseconds. */
const BATCH = 500

/**
 * Rounds over a column, as long as rows were locked or changed by requests. A request holds a lock for a second at
 * most, and writes a sealed column only with a new value.
 */
const ROUNDS = 10
const NEXT_ROUND_AFTER_MS = 500

interface RotateDeps extends Pick<Deps, 'db'> {
  encryption: Encryption
  /** Changes nothing; counts what would be moved. */
  dryRun?: boolean
  onProgress?: (resealed: number) => void
}

export interface Rotated {
  table: string
  resealed: number
  /** Rows that no known key opens, by the reason. */
  unopened: Record<string, number>
}

export async function rotateSealedRows(deps: RotateDeps): Promise<Rotated[]> {
  const rotated: Rotated[] = []
  for (const column of SEALED_COLUMNS) rotated.push(await rotateColumn(deps, column))
  return rotated
}

async function rotateColumn(deps: RotateDeps, column: SealedColumn): Promise<Rotated> {
  let resealed = 0
  for (let round = 1; ; round++) {
    const swept = await sweep(deps, column)
    resealed += swept.resealed
    const { table } = column
    if (swept.skipped === 0 || round === ROUNDS) return { table, resealed, unopened: swept.unopened }
    await sleep(NEXT_ROUND_AFTER_MS)
  }
}

/** Goes over a column once, in the order of its key. */
async function sweep({ db, encryption, dryRun = false, onProgress }: RotateDeps, column: SealedColumn) {
  const swept = { resealed: 0, skipped: 0, unopened: {} as Record<string, number> }
  for (let after: SealedRow | undefined; ; ) {
    const rows = await listOutdated(db, column, { prefix: encryption.prefix, after, limit: BATCH })
    const opened = rows.flatMap((row) => reseal(encryption, column, row, swept.unopened))
    const replaced = dryRun ? opened.length : await replaceSealed(db, column, opened)
    swept.resealed += replaced
    swept.skipped += opened.length - replaced
    onProgress?.(replaced)
    after = rows.at(-1)
    if (rows.length < BATCH) return swept
  }
}

function reseal(
  encryption: Encryption,
  column: SealedColumn,
  row: SealedRow,
  unopened: Record<string, number>,
): Resealed[] {
  try {
    const value: unknown = encryption.open(column, row)
    const [key = null, before = null] = [row[column.key], row[column.column]]
    return [{ key, before, after: encryption.seal(column, row, value) }]
  } catch (error) {
    const { message } = error as Error
    unopened[message] = (unopened[message] ?? 0) + 1
    return []
  }
}
