// The stored files: how many of each kind, and the last check of them. A small installation is counted at each request.
// A larger one is counted every hour by housekeeping, in pages, because a count reads each row.
import type { Kysely } from 'kysely'
import type { DB, StorageResult } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { type Actor, recordAct } from '../audit/audit.ts'
import {
  countPage,
  findLastCheck,
  finishCheck,
  insertCheck,
  type KindCount,
  lockRunningCheck,
  readCounts,
  replaceCounts,
  type StorageCheck,
} from './storage.store.ts'
import { type CheckJob, STORAGE_QUEUE } from './storage-queue.ts'

/** Files that a request counts, in some milliseconds. */
const COUNTED_AT_ONCE = 20_000

const COUNT_EVERY_MS = 3_600_000

export interface ShownCheck {
  id: string
  state: 'running' | 'finished' | 'failed'
  begun_at: Date
  finished_at: Date | null
  /** Machine that checks. */
  machine: string | null
  /** Account of the machine, for a command. */
  operator: string | null
  result: StorageResult | null
  error: string | null
}

export interface StorageState {
  kinds: KindCount[]
  files: number
  bytes: number
  /** Time of the count; null before the first one. */
  counted_at: Date | null
  check: ShownCheck | null
}

type StorageDeps = Pick<Deps, 'db' | 'queue' | 'now'>

/** `atOnce`: files that are counted now; more are read from the last count. */
export async function readStorage(deps: StorageDeps, atOnce = COUNTED_AT_ONCE): Promise<StorageState> {
  const [{ kinds, at }, check] = await Promise.all([currentCounts(deps, atOnce), readCheck(deps)])
  const sum = (of: 'files' | 'bytes') => kinds.reduce((total, count) => total + count[of], 0)
  return { kinds, files: sum('files'), bytes: sum('bytes'), counted_at: at, check }
}

async function currentCounts(
  { db, now }: StorageDeps,
  atOnce: number,
): Promise<{ kinds: KindCount[]; at: Date | null }> {
  const { counts, rows } = await countPage(db, undefined, atOnce)
  if (rows < atOnce) return { kinds: counts.sort(byKind), at: now() }
  const stored = await readCounts(db)
  return { kinds: stored.map(({ counted_at: _, ...count }) => count), at: stored[0]?.counted_at ?? null }
}

const byKind = (a: KindCount, b: KindCount) => (a.kind < b.kind ? -1 : 1)

/** Counts all files, a page at a time, if the last count is an hour old. */
export async function* countStorage(
  { db, now }: Pick<Deps, 'db' | 'now'>,
  perPage = COUNTED_AT_ONCE,
): AsyncGenerator<void, void> {
  const [stored] = await readCounts(db)
  if (stored && now().getTime() - stored.counted_at.getTime() < COUNT_EVERY_MS) return
  const sums = new Map<string, KindCount>()
  for (let page = await countPage(db, undefined, perPage); ; page = await countPage(db, page.last, perPage)) {
    for (const { kind, files, bytes } of page.counts) {
      const sum = sums.get(kind) ?? { kind, files: 0, bytes: 0 }
      sums.set(kind, { kind, files: sum.files + files, bytes: sum.bytes + bytes })
    }
    yield
    if (page.rows < perPage) break
  }
  await db.transaction().execute((trx) => replaceCounts(trx, [...sums.values()], now()))
}

/** Begins a check in the background, and records it; returns the one that runs if there is one. */
export async function beginCheck(deps: StorageDeps & Pick<Deps, 'newId'>, by: Actor): Promise<ShownCheck> {
  const { db, queue, now, newId } = deps
  await db.transaction().execute(async (trx) => {
    const running = await lockRunningCheck(trx)
    if (running && (await queue.has(trx, STORAGE_QUEUE.name, { checkId: running.id }))) return
    if (running) await finishCheck(trx, running.id, { error: LOST, now: now() })
    const job: CheckJob = { checkId: newId() }
    // Another request may have begun one meanwhile.
    if (!(await insertCheck(trx, { id: job.checkId, operator: null, begun_at: now() }))) return
    await recordAct(deps, trx, by, { action: 'storage_check_begun', details: { check: job.checkId } })
    await queue.send(trx, STORAGE_QUEUE.name, job)
  })
  const check = await readCheck(deps)
  if (!check) throw new Error('the check that was begun is gone')
  return check
}

const LOST = 'no worker survived it'

/** The check that runs, or the last one. One whose job was lost has failed. */
async function readCheck({ db, queue }: StorageDeps): Promise<ShownCheck | null> {
  const check = await findLastCheck(db)
  if (!check) return null
  const isLost =
    check.finished_at === null && !(await hasJob({ db, queue }, check.id)) && (await isUnfinished(db, check))
  return toShown(isLost ? { ...check, error: LOST } : check)
}

const hasJob = ({ db, queue }: Pick<Deps, 'db' | 'queue'>, checkId: string): Promise<boolean> =>
  db.transaction().execute((trx) => queue.has(trx, STORAGE_QUEUE.name, { checkId }))

/** Reads again: the check may have ended before its job was looked for. */
const isUnfinished = async (db: Kysely<DB>, { id }: StorageCheck): Promise<boolean> => {
  const last = await findLastCheck(db)
  return last?.id === id && last.finished_at === null
}

const toShown = ({ worker: machine, ...check }: StorageCheck): ShownCheck => ({
  ...check,
  machine,
  state: check.error !== null ? 'failed' : check.finished_at ? 'finished' : 'running',
})
