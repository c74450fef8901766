// Importing users of another system from JSON lines (`users import`), and exporting them. A line is imported whole or
// refused by number, and a second run over the same file adds only the missing users. Tests: here,
// test/cli-users.test.ts.
import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import { type Actor, type AuditDeps, type AuditLog, audit } from '../../core/audit/audit.ts'
import type { EventRecorder } from '../../core/webhooks/record-events.ts'
import type { DB } from '../../db/tables.ts'
import { beginCreation } from '../../db/watched-users.ts'
import { type ExistingUser, findExisting, type ImportedUser, insertUsers } from './import-users.store.ts'
import { type Line, readLines } from './read-lines.ts'
import { type LineDefaults, parseUserLine } from './user-line.ts'

export interface ImportSummary {
  lines: number
  imported: number
  already_there: number
  refused: number
}

export interface ImportOptions extends LineDefaults, AuditDeps {
  db: Kysely<DB>
  log: AuditLog
  /** Read again before each batch: an import may run for hours, and no notification reaches it. */
  events: Pick<EventRecorder, 'refresh'>
  actor: Actor
  /** Checks everything against the database and rolls back. */
  dryRun: boolean
  onRefused: (line: number, reason: string) => void
  onProgress: (summary: ImportSummary) => void
}

interface Run extends ImportOptions {
  summary: ImportSummary
  refuse: (line: number, reason: string) => void
  read: InputRead
}

/** Bounds of one statement, large enough that the round trip to the server does not matter. */
const BATCH = { users: 1_000, characters: 4 * 1024 * 1024 }

/** Imports JSON lines. Memory does not grow with the input; the next batch is read while one is inserted. */
export async function importUsers(options: ImportOptions, input: AsyncIterable<Uint8Array>): Promise<ImportSummary> {
  const summary: ImportSummary = { lines: 0, imported: 0, already_there: 0, refused: 0 }
  const refuse = (line: number, reason: string) => {
    summary.refused++
    options.onRefused(line, reason)
  }
  const read = inputRead()
  const run: Run = { ...options, summary, refuse, read }
  // Keyed by id: insertUsers reports by id, so a batch must not hold an id twice.
  const batch = new Map<string, ImportedUser>()
  let characters = 0
  let running: Promise<void> = Promise.resolve()
  const flush = async () => {
    await running
    const users = [...batch.values()]
    batch.clear()
    characters = 0
    running = importBatch(run, users).then(() => options.onProgress(summary))
    // Awaited before the next one; without a handler until then, a rejection would end the process.
    running.catch(() => {})
  }
  for await (const line of readLines(read.of(input))) {
    summary.lines++
    const given = readUser(line, options)
    if ('problem' in given) refuse(line.number, given.problem)
    else {
      if (batch.has(given.user.id)) await flush()
      batch.set(given.user.id, given)
      characters += 'text' in line ? line.text.length : 0
    }
    if (batch.size >= BATCH.users || characters >= BATCH.characters) await flush()
  }
  await flush()
  await running
  return summary
}

type InputRead = ReturnType<typeof inputRead>

/** Size and hash of the input so far: they identify it in the audit log. */
function inputRead() {
  const hash = createHash('sha256')
  let bytes = 0
  return {
    async *of(input: AsyncIterable<Uint8Array>) {
      for await (const chunk of input) {
        hash.update(chunk)
        bytes += chunk.length
        yield chunk
      }
    },
    soFar: () => ({ bytes, sha256: hash.copy().digest('hex') }),
  }
}

function readUser(line: Line, options: ImportOptions): ImportedUser | { problem: string } {
  if ('problem' in line) return line
  try {
    return parseUserLine(line.text, line.number, options)
  } catch (error) {
    return { problem: (error as Error).message }
  }
}

async function importBatch(run: Run, users: ImportedUser[]): Promise<void> {
  if (users.length === 0) return
  if (!run.dryRun) await run.events.refresh()
  await insertBatch(run, users)
}

/** Finds a line that the database refuses by halving the batch. */
async function insertBatch(run: Run, users: ImportedUser[]): Promise<void> {
  const inserted = await tryInsert(run, users)
  if (inserted) {
    const others = users.filter(({ user }) => !inserted.has(user.id))
    run.summary.imported += inserted.size
    if (others.length > 0) await explainOthers(run, others)
  } else if (users.length === 1) {
    run.refuse((users[0] as ImportedUser).line, 'cannot be stored by the database')
  } else {
    const middle = users.length >> 1
    await insertBatch(run, users.slice(0, middle))
    await insertBatch(run, users.slice(middle))
  }
}

/** Inserts users with their audit entry. Returns the new ids; undefined: the database refused the batch's content. */
async function tryInsert(run: Run, users: ImportedUser[]): Promise<Set<string> | undefined> {
  try {
    if (run.dryRun) return await triedIn(run.db, users)
    return await run.db.transaction().execute(async (trx) => {
      const inserted = await insertUsers(trx, users)
      await beginCreation(trx, [...inserted])
      const traits = { users: inserted.size, ...run.read.soFar() }
      if (inserted.size > 0) await audit(run, trx, run.log, { action: 'users_imported', actor: run.actor, traits })
      return inserted
    })
  } catch (error) {
    if (isRefusedByContent(error)) return undefined
    throw error
  }
}

async function triedIn(db: Kysely<DB>, users: ImportedUser[]): Promise<Set<string>> {
  const trx = await db.startTransaction().execute()
  try {
    return await insertUsers(trx, users)
  } finally {
    await trx.rollback().execute()
  }
}

/** SQLSTATE classes that a row's content can cause: data exceptions, constraints, program limits. */
const isRefusedByContent = (error: unknown) => /^(22|23|54)/.test(String((error as { code?: unknown }).code ?? ''))

async function explainOthers({ db, summary, refuse }: Run, users: ImportedUser[]): Promise<void> {
  const existing = await findExisting(db, users)
  const byId = new Map(existing.map((user) => [user.id, user]))
  const byEmail = new Map(existing.map((user) => [`${user.aud} ${user.email}`, user]))
  const byPhone = new Map(existing.map((user) => [`${user.aud} ${user.phone}`, user]))
  for (const given of users) {
    const { id, aud, email, phone } = given.user
    const matches: [string, ExistingUser | undefined][] = [
      ['id', byId.get(id)],
      ['email', email ? byEmail.get(`${aud} ${email}`) : undefined],
      ['phone', phone ? byPhone.get(`${aud} ${phone}`) : undefined],
    ]
    const [what, match] = matches.find(([, user]) => user) ?? ['identity']
    if (match && isSame(given, match)) summary.already_there++
    // It may be missing in a dry run: a line of the same batch, rolled back since.
    else refuse(given.line, `${what} belongs to another user`)
  }
}

/**
 * Reports whether an earlier run imported this user: id, addresses and creation are the same; the rest may have
 * changed.
 */
function isSame({ user, hasOwnId, hasOwnCreatedAt }: ImportedUser, stored: ExistingUser): boolean {
  return (
    user.aud === stored.aud &&
    (!hasOwnId || user.id === stored.id) &&
    (!user.email || user.email === stored.email) &&
    (!user.phone || user.phone === stored.phone) &&
    (!hasOwnCreatedAt || new Date(user.created_at).getTime() === stored.created_at.getTime())
  )
}
