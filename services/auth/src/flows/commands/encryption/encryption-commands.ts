// The `keys encryption` commands: which keys rows need, and the move to the key that encrypts (rotate.ts).
import { command, printResult } from '@services/common/process/command-line'
import { audit } from '../../../core/audit/audit.ts'
import { createEncryption, type Encryption, shownKeyId } from '../../../core/keys/encryption.ts'
import { SEALED_COLUMNS } from '../../../core/keys/sealed-columns.ts'
import { countSealedRows, type SealedRows } from '../../../core/keys/sealed-rows.store.ts'
import { missingKeys, sentence } from '../../../core/keys/sealed-rows.ts'
import { onDatabase } from '../../../on-database.ts'
import { type Rotated, rotateSealedRows } from './rotate.ts'

/** Long enough for a count of a hundred million rows. */
const STATEMENT_WITHIN_MS = 120_000
const PROGRESS_EVERY_MS = 1_000

export const encryptionStatus = command({
  name: 'keys encryption status',
  summary: 'count encrypted rows by key and table',
  details: `The first key of AUTH_ENCRYPTION_KEYS encrypts. A key of which all counts are 0 can be dropped. As JSON, key_id is
null for the key without id. The exit code is 1 if rows need a key that AUTH_ENCRYPTION_KEYS lacks.`,
  run: ({ json }) =>
    onDatabase(
      async ({ config, db }) => {
        const encryption = createEncryption(config.encryption)
        const counted = await countSealedRows(db)
        printResult(json, withZeros(encryption, counted), statusText(encryption, withZeros(encryption, counted)))
        for (const missing of missingKeys(encryption, counted)) {
          process.stderr.write(`${sentence(missing)}\n`)
          process.exitCode = 1
        }
      },
      { statementWithinMs: STATEMENT_WITHIN_MS },
    ),
})

/** Adds what known keys do not encrypt: 0 is the figure that an operator waits for. */
function withZeros({ keyIds }: Encryption, counted: readonly SealedRows[]): SealedRows[] {
  const tables = [...new Set(SEALED_COLUMNS.map(({ table }) => table))]
  const ids = [...new Set([...keyIds, ...counted.map(({ key_id: id }) => id)])]
  return ids.flatMap((id) =>
    tables.flatMap((table) => {
      const found = counted.find((each) => each.key_id === id && each.table === table)
      return found ? [found] : keyIds.includes(id) ? [{ key_id: id, table, rows: 0 }] : []
    }),
  )
}

function statusText({ keyIds }: Encryption, figures: readonly SealedRows[]): string {
  const state = (id: string | null) => (id === keyIds[0] ? 'encrypts' : keyIds.includes(id) ? '' : 'unknown')
  const cells = figures.map(({ key_id: id, table, rows }) => [shownKeyId(id), state(id), table, String(rows)])
  const widths = [0, 1, 2].map((at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)))
  return cells
    .map((row) => row.map((cell, at) => (at < 3 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(9))).join('  '))
    .join('\n')
}

export const encryptionRotate = command({
  name: 'keys encryption rotate',
  summary: 'encrypt all rows anew under the first key of AUTH_ENCRYPTION_KEYS',
  options: { 'dry-run': { meaning: 'count the rows and change nothing' } },
  details: `Every replica must have the key already, first in its list. It runs beside the service, and continues where an
interrupted run ended. The exit code is 1 if rows of other keys are left.`,
  run: ({ options, json }) =>
    onDatabase(
      async ({ operator, ...deps }) => {
        const { config, db, log } = deps
        const encryption = createEncryption(config.encryption)
        const dryRun = options['dry-run'] ?? false
        const [keyId = null] = encryption.keyIds
        if (!dryRun) {
          // First: an interrupted run has moved rows, too.
          await audit(deps, db, log, { action: 'encryption_rotated', actor: operator, traits: { key_id: keyId } })
        }
        const rotated = await rotateSealedRows({ db, encryption, dryRun, onProgress: showProgress() })
        const left = dryRun ? 0 : rowsLeft(encryption, await countSealedRows(db))
        const result = { key_id: keyId, dry_run: dryRun, tables: rotated.map(toJson), left }
        printResult(json, result, rotated.map((table) => describe(table, dryRun)).join('\n'))
        for (const { table, unopened } of rotated) {
          for (const [reason, rows] of Object.entries(unopened)) {
            process.stderr.write(`${rows} rows of ${table} do not open: ${reason}\n`)
            process.exitCode = 1
          }
        }
        if (left === 0) return
        process.stderr.write(
          `${left} rows are left under other keys: if replicas still encrypt with one, restart them and run this again\n`,
        )
        process.exitCode = 1
      },
      { statementWithinMs: STATEMENT_WITHIN_MS },
    ),
})

const rowsLeft = ({ keyIds }: Encryption, counted: readonly SealedRows[]): number =>
  counted.filter(({ key_id: id }) => id !== keyIds[0]).reduce((sum, { rows }) => sum + rows, 0)

const toJson = ({ table, resealed, unopened }: Rotated) => ({
  table,
  resealed,
  unopened: Object.values(unopened).reduce((sum, rows) => sum + rows, 0),
})

const describe = ({ table, resealed }: Rotated, dryRun: boolean) =>
  `${table}: ${resealed} rows ${dryRun ? 'would be encrypted' : 'encrypted'} anew`

function showProgress(): (resealed: number) => void {
  let shown = performance.now()
  let total = 0
  return (resealed) => {
    total += resealed
    if (performance.now() - shown < PROGRESS_EVERY_MS) return
    shown = performance.now()
    process.stderr.write(`${total} rows encrypted anew\n`)
  }
}
