import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { CommandFailure, command, printResult } from '@services/common/process/command-line'
import { typedPath } from '@services/common/process/typed-path'
import { audit } from '../../core/audit/audit.ts'
import { NIL_UUID } from '../../db/uuid.ts'
import { onDatabase, onReads } from '../../on-database.ts'
import { findUsersAfter } from './export-users.store.ts'
import { type ImportSummary, importUsers } from './import-users.ts'

const DETAILS = `FILE holds one user a line as JSON; - reads standard input. Members, all optional but one of the first three:
  id, email, phone, email_confirmed_at or email_verified, phone_confirmed_at or phone_verified, password_hash,
  user_metadata, app_metadata, role, aud, created_at, updated_at, last_sign_in_at, invited_at, banned_until,
  is_anonymous, identities: [{provider, provider_id, identity_data, created_at, last_sign_in_at}],
  passkeys as an export has them
Exports of the reference's users table are read as they are (encrypted_password, raw_user_meta_data, raw_app_meta_data).
Refused lines are listed on standard error by number; all others are imported, and the exit code is 1. A second run
adds the missing users. Second factors are not imported, passkeys are. Hashes: bcrypt up to cost 15, argon2i, argon2id, scrypt ($scrypt$), Firebase ($fbscrypt$).`

const PROGRESS_EVERY_MS = 1_000

/** Long enough for a batch of a thousand users on a busy server. */
const STATEMENT_WITHIN_MS = 120_000

export const usersImport = command({
  name: 'users import',
  summary: 'import users of another system from JSON lines',
  operands: ['FILE'],
  options: { 'dry-run': { meaning: 'check every line and import nothing' } },
  details: DETAILS,
  run: async ({ operands: [file = ''], options, json }) => {
    const dryRun = options['dry-run'] ?? false
    const started = performance.now()
    const summary = await onDatabase(
      ({ operator, ...deps }) =>
        importUsers(
          {
            ...deps,
            actor: operator,
            newId: randomUUID,
            audience: deps.config.jwt.audience,
            role: deps.config.jwt.defaultRole,
            dryRun,
            onRefused: (line, reason) => process.stderr.write(`line ${line}: ${reason}\n`),
            onProgress: showProgress(started),
          },
          openInput(file),
        ),
      { statementWithinMs: STATEMENT_WITHIN_MS },
    )
    const seconds = Math.round((performance.now() - started) / 100) / 10
    printResult(json, { ...summary, dry_run: dryRun, seconds }, describe(summary, dryRun, seconds))
    if (summary.refused > 0) process.exitCode = 1
  },
})

function describe(summary: ImportSummary, dryRun: boolean, seconds: number): string {
  const { lines, imported, already_there: alreadyThere, refused } = summary
  const verb = dryRun ? 'would be imported' : 'imported'
  return `${lines} lines in ${seconds} s: ${imported} ${verb}, ${alreadyThere} already there, ${refused} refused`
}

function showProgress(started: number): (summary: ImportSummary) => void {
  let shown = started
  return (summary) => {
    if (performance.now() - shown < PROGRESS_EVERY_MS) return
    shown = performance.now()
    process.stderr.write(`${summary.lines} lines read, ${summary.imported} imported, ${summary.refused} refused\n`)
  }
}

async function* openInput(file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* file === '-' ? process.stdin : createReadStream(typedPath(file), { highWaterMark: 256 * 1024 })
  } catch (error) {
    const { syscall } = error as NodeJS.ErrnoException
    if (syscall === 'open' || syscall === 'read') throw new CommandFailure(`cannot read: ${(error as Error).message}`)
    throw error
  }
}

const EXPORT_PAGE = 500

/** `users export`. Reads a page at a time: memory does not grow with the number of users. */
export const usersExport = command({
  name: 'users export',
  summary: 'print all users as JSON lines',
  options: { 'with-hashes': { meaning: 'with their password hashes' } },
  details:
    'The format of `users import`. The export is not a snapshot: users who sign up or change meanwhile may be missing.',
  run: async ({ options }) => {
    await onReads(async (reads, { operator: actor, db, log, ...deps }) => {
      const traits = { with_hashes: options['with-hashes'] ?? false }
      // First: a part may be in use before an interrupted export ends.
      await audit(deps, db, log, { action: 'users_exported', actor, traits })
      // Sorts before all ids.
      let after = NIL_UUID
      for (;;) {
        const page = await reads.current((db) => findUsersAfter(db, after, EXPORT_PAGE))
        for (const { user, password_hash: hash, passkeys } of page) {
          const line = {
            ...user,
            ...(passkeys && { passkeys }),
            ...(options['with-hashes'] && hash && { password_hash: hash }),
          }
          if (!process.stdout.write(`${JSON.stringify(line)}\n`)) await once(process.stdout, 'drain')
        }
        const last = page.at(-1)
        if (!last) return
        after = last.user.id
      }
    })
  },
})
