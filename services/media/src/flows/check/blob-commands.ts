import { hostname } from 'node:os'
import { CommandFailure, command, printResult } from '@services/common/process/command-line'
import { finishCheck, insertCheck } from '../../core/administration/storage.store.ts'
import { completeAct, recordAct } from '../../core/audit/audit.ts'
import { openBlobs } from '../../deps.ts'
import { byOperator, type CommandDeps, onDatabase } from '../../on-database.ts'
import { StorageUnavailable } from '../../store/blobs/blob-storage.ts'
import { type CheckDeps, FINDING_KINDS, type Finding } from './check-blobs.ts'
import { toResult } from './stored-check.ts'
import { type Survey, survey } from './survey.ts'

/** If more entries than this, and more than half, have no counterpart, store and database hardly belong together. */
const FEW = 10

/** Exit code, as with `diff`; 0 and 1 are those of all commands. */
const SOMETHING_FOUND = 3

const blobsCheck = command({
  name: 'blobs check',
  summary: 'compare stored files with the database',
  options: {
    deep: { meaning: 'read every file and compare its hash' },
    fix: { meaning: 'repair the findings; clips whose file is lost fail' },
    'accept-losses': { meaning: 'with --fix, even if it deletes most files or most rows' },
  },
  details: `It may run beside the service. Files and uploads younger than an hour are never deleted.
Exit code 0: no findings, or all were fixed; ${SOMETHING_FOUND}: findings are left.`,
  run: async ({ options, json }) => {
    const { deep = false, fix = false, 'accept-losses': accepted = false } = options
    await onStore(async (deps) => {
      // Without hashing the files, which takes long.
      if (fix && !accepted) refuseStrangers(await survey(deps, { deep: false, fix: false }))
      const begunAt = deps.now()
      const onFinding = json ? undefined : (finding: Finding) => process.stdout.write(`${toLine(finding)}\n`)
      const options = { deep, accept_losses: accepted }
      // Before the first change, because the command may be killed during one.
      const entry =
        fix && (await recordAct(deps, deps.db, byOperator(deps), { action: 'files_repaired', details: options }))
      const result = await survey(deps, { deep, fix }, onFinding)
      if (entry) await completeAct(deps.db, entry, { ...options, fixed: result.fixed })
      await keepResult(deps, begunAt, result)
      const { findings, left, ...counts } = result
      printResult(json, { ...counts, findings }, toSummary(result))
      if (left > 0) process.exitCode = SOMETHING_FOUND
    })
  },
})

export const blobCommands = [blobsCheck]

/** Keeps the result as that of the last check, unless one of administrators runs. */
async function keepResult({ db, newId, now, operator }: CommandDeps, begunAt: Date, result: Survey): Promise<void> {
  const id = newId()
  await db.transaction().execute(async (trx) => {
    if (!(await insertCheck(trx, { id, operator, begun_at: begunAt, worker: hostname() }))) return
    await finishCheck(trx, id, { result: toResult(result), now: now() })
  })
}

/** Throws for a directory that is not mounted, the bucket of another installation, or an old database. */
function refuseStrangers({ files, rows, found }: Survey): void {
  const { blob_without_row: orphans = 0, row_without_blob: lost = 0 } = found
  const isMost = (count: number, all: number) => count > FEW && count > all / 2
  if (!isMost(orphans, files) && !isMost(lost, rows)) return
  throw new CommandFailure(
    `${orphans} of ${files} files have no row and ${lost} of ${rows} rows have no file: do store and database belong to one installation?\nNothing was changed. Use --accept-losses to fix all the same.`,
  )
}

const onStore = (work: (deps: CheckDeps & CommandDeps) => Promise<void>): Promise<void> =>
  onDatabase(async (deps) => {
    const blobs = await openBlobs(deps.config.storage, deps.log)
    try {
      await work({ ...deps, blobs })
    } catch (error) {
      if (error instanceof StorageUnavailable) throw new CommandFailure(`storage unavailable: ${error.message}`)
      throw error
    } finally {
      await blobs.close()
    }
  })

function toLine({ kind, file, token, actual, expected, fixed }: Finding): string {
  const numbers = actual === undefined ? '' : expected === undefined ? `${actual}` : `${actual}, not ${expected}`
  return [kind, file ?? token ?? '', numbers, fixed ? 'fixed' : ''].filter(Boolean).join('  ')
}

function toSummary({ files, bytes, rows, found, fixed }: Survey): string {
  const counts = FINDING_KINDS.filter((kind) => found[kind]).map(
    (kind) => `${found[kind]} ${kind}${fixed[kind] ? ` (${fixed[kind]} fixed)` : ''}`,
  )
  return `${files} files of ${bytes} bytes, ${rows} rows: ${counts.join(', ') || 'no findings'}`
}
