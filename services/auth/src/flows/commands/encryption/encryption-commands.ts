// The `keys encryption` commands: which keys rows need, and the move to the key that encrypts (rotate.ts).
import { command, printResult } from '@services/common/process/command-line'
import { audit } from '../../../core/audit/audit.ts'
import { createEncryption, type Encryption, shownKeyId } from '../../../core/keys/encryption.ts'
import { countSealedRows, saveCount } from '../../../core/keys/sealed-rows.store.ts'
import { COUNT_WITHIN_MS, type KeyRows, missingKeys, rowsByKey, sentence } from '../../../core/keys/sealed-rows.ts'
import { type CommandDeps, onDatabase } from '../../../on-database.ts'
import { type Rotated, rotateSealedRows } from './rotate.ts'

const PROGRESS_EVERY_MS = 1_000

export const encryptionStatus = command({
  name: 'keys encryption status',
  summary: 'count encrypted rows by key and table',
  details: `The first key of AUTH_ENCRYPTION_KEYS encrypts. A key of which all counts are 0 can be dropped. As JSON, key_id is
null for the key without id, and known is false for a key that the settings lack or have replaced. The exit code is 1
if rows need one.`,
  run: ({ json }) =>
    onDatabase(
      async ({ config, db }) => {
        const encryption = createEncryption(config.encryption)
        const figures = rowsByKey(encryption, await countSealedRows(db))
        printResult(json, figures, statusText(encryption, figures))
        for (const missing of missingKeys(encryption, figures)) {
          process.stderr.write(`${sentence(missing)}\n`)
          process.exitCode = 1
        }
      },
      { statementWithinMs: COUNT_WITHIN_MS },
    ),
})

function statusText({ keys: [writer, ...others] }: Encryption, figures: readonly KeyRows[]): string {
  const state = ({ key_id: id, known }: KeyRows) => {
    if (known) return id === writer?.id ? 'encrypts' : ''
    return [writer, ...others].some((key) => key?.id === id) ? 'changed' : 'unknown'
  }
  const cells = figures.map((row) => [shownKeyId(row.key_id), state(row), row.table, String(row.rows)])
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
        const keyId = encryption.keys[0]?.id ?? null
        if (!dryRun) {
          // First: an interrupted run has moved rows, too.
          await audit(deps, db, log, { action: 'encryption_rotated', actor: operator, traits: { key_id: keyId } })
        }
        const rotated = await rotateSealedRows({ db, encryption, dryRun, onProgress: showProgress() })
        const left = dryRun ? 0 : await countLeft(deps, encryption, rotated)
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
      { statementWithinMs: COUNT_WITHIN_MS },
    ),
})

/** Counts, for the replicas too, and returns the rows that another run can move: those that open under other keys. */
async function countLeft(
  { db, now }: Pick<CommandDeps, 'db' | 'now'>,
  { keys }: Encryption,
  rotated: readonly Rotated[],
): Promise<number> {
  const counted = await countSealedRows(db)
  await saveCount(db, counted, now())
  const others = counted.filter(({ id, check }) => id !== keys[0]?.id || check !== keys[0]?.check)
  const unopened = rotated.reduce((sum, table) => sum + toJson(table).unopened, 0)
  return Math.max(0, others.reduce((sum, { rows }) => sum + rows, 0) - unopened)
}

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
