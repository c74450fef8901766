// `blobs check`: compares what is stored with what the database says is stored. The one rule: it runs beside a service
// at work, so what looks wrong is looked at again, alone and under lock, before it is called wrong, let alone mended.
// SQL: check-blobs.store.ts, stored-sums.store.ts. What becomes of clips whose file is lost: give-up-file.ts. Who keeps and deletes files: ../blobs/keep-files.ts.
import { createHash } from 'node:crypto'
import type { EmitDeps } from '../../core/webhooks/emit-event.ts'
import type { Deps } from '../../deps.ts'
import {
  type BlobName,
  type BlobStorage,
  blobFile,
  isLeftover,
  LEFTOVER_AGE_MS,
  type StoredBlob,
} from '../../store/blobs/blob-storage.ts'
import { registerBlob } from '../../store/blobs/blobs.store.ts'
import { deleteIfUnreferenced } from '../../store/blobs/keep-files.ts'
import { type BlobRow, correctCount, correctSize, findBlobRow, listBlobRows, lockBlobRow } from './check-blobs.store.ts'
import { giveUpFile } from './give-up-file.ts'
import { correctSum, listWrongSums } from './stored-sums.store.ts'

export const FINDING_KINDS = [
  'blob_without_row',
  'row_without_blob',
  'wrong_size',
  'wrong_hash',
  'wrong_reference_count',
  'unfinished_put',
  'wrong_stored_sum',
] as const

export interface Finding {
  kind: (typeof FINDING_KINDS)[number]
  /** `<sha256>.<ext>`; without it, of something that has no name yet. */
  file?: string
  /** Whose sum it is. */
  token?: string
  /** What is there, and what should be: bytes or references. */
  actual?: number
  expected?: number
  fixed: boolean
}

export interface Totals {
  files: number
  bytes: number
  rows: number
}

export type CheckDeps = Pick<Deps, 'db' | 'blobs' | 'resultsChannel'> & EmitDeps

interface Check {
  deps: CheckDeps
  options: CheckOptions
}

export interface CheckOptions {
  /** Read every file and compare its hash. */
  deep: boolean
  fix: boolean
  report: (finding: Finding) => void
}

/** So many rows in memory at a time, beside a page of the store's list. */
const ROWS_AT_ONCE = 500

/** Goes through both lists once, side by side. Throws StorageUnavailable, having mended what it came by. */
export async function checkBlobs(deps: CheckDeps, options: CheckOptions): Promise<Totals> {
  const check = { deps, options }
  const totals: Totals = { files: 0, bytes: 0, rows: 0 }
  for await (const { row, blob } of sideBySide(listAllRows(deps), deps.blobs.list())) {
    if (row) totals.rows++
    if (blob) totals.files++
    totals.bytes += blob?.bytes ?? 0
    if (row && row.counted !== row.referenceCount) await checkCount(check, row)
    if (row) await checkFile(check, row, blob)
    else if (blob) await checkOrphan(check, blob)
  }
  await checkUnfinished(check)
  await checkSums(check)
  return totals
}

async function* listAllRows({ db }: CheckDeps): AsyncGenerator<BlobRow> {
  let rows = await listBlobRows(db, undefined, ROWS_AT_ONCE)
  while (rows.length > 0) {
    yield* rows
    rows = await listBlobRows(db, rows.at(-1)?.name, ROWS_AT_ONCE)
  }
}

/** Rows and files of the same name together. A store that lists in another order costs second looks, and no false report. */
async function* sideBySide(
  rows: AsyncGenerator<BlobRow>,
  blobs: AsyncIterable<StoredBlob>,
): AsyncGenerator<{ row: BlobRow | undefined; blob: StoredBlob | undefined }> {
  const stored = blobs[Symbol.asyncIterator]()
  let row = (await rows.next()).value as BlobRow | undefined
  let blob = (await stored.next()).value as StoredBlob | undefined
  while (row || blob) {
    const order = !blob ? -1 : !row ? 1 : compareNames(row.name, blob.name)
    yield { row: order <= 0 ? row : undefined, blob: order >= 0 ? blob : undefined }
    if (order <= 0) row = (await rows.next()).value as BlobRow | undefined
    if (order >= 0) blob = (await stored.next()).value as StoredBlob | undefined
  }
}

function compareNames(a: BlobName, b: BlobName): number {
  const [left, right] = [blobFile(a), blobFile(b)]
  return left < right ? -1 : left > right ? 1 : 0
}

async function checkCount({ deps, options }: Check, { name, counted, referenceCount }: BlobRow): Promise<void> {
  if (options.fix) {
    await deps.db.transaction().execute(async (trx) => {
      const row = await lockBlobRow(trx, name)
      if (row && row.counted !== row.referenceCount) await correctCount(trx, name, row.counted, deps.now())
    })
  }
  const numbers = { actual: referenceCount, expected: counted }
  options.report({ kind: 'wrong_reference_count', file: blobFile(name), ...numbers, fixed: options.fix })
}

/** Of files that nothing refers to only one thing is of interest: whether housekeeping has forgotten the row. */
async function checkFile(check: Check, row: BlobRow, blob: StoredBlob | undefined): Promise<void> {
  const { deps, options } = check
  if (row.counted === 0) {
    if (!blob && isOld(deps, row.unreferencedAt)) await checkForgottenRow(check, row.name)
  } else if (blob?.bytes !== row.bytes) await checkSize(check, row.name)
  else if (options.deep) await checkHash(check, row.name)
}

const isOld = ({ now }: CheckDeps, since: Date | null) =>
  since !== null && now().getTime() - since.getTime() > LEFTOVER_AGE_MS

async function checkForgottenRow({ deps, options }: Check, name: BlobName): Promise<void> {
  const row = await findBlobRow(deps.db, name)
  if (!row || row.counted > 0 || !isOld(deps, row.unreferencedAt) || (await deps.blobs.stat(name))) return
  const fixed = options.fix && (await deleteIfUnreferenced(deps, name))
  options.report({ kind: 'row_without_blob', file: blobFile(name), fixed })
}

/** A file that is not there, or not all of it. Locked, the row has its file if it has references: see `keepFiles`. */
async function checkSize({ deps, options }: Check, name: BlobName): Promise<void> {
  const seen = await deps.db.transaction().execute(async (trx) => {
    const row = await lockBlobRow(trx, name)
    return row && row.counted > 0 ? { row, stored: await deps.blobs.stat(name) } : undefined
  })
  if (!seen || seen.stored?.bytes === seen.row.bytes) return
  const { row, stored } = seen
  const file = blobFile(name)
  if (!stored) {
    const fixed = options.fix && (await giveUpFile(deps, name, undefined))
    return options.report({ kind: 'row_without_blob', file, fixed })
  }
  const sizes = { actual: stored.bytes, expected: row.bytes }
  // The name decides which of the two is wrong.
  const isRight = options.fix && (await hashOf(deps.blobs, name)) === name.sha256
  if (isRight) await deps.db.transaction().execute((trx) => correctSize(trx, name, stored.bytes))
  const fixed = options.fix && (isRight || (await giveUpFile(deps, name, stored)))
  options.report({ kind: 'wrong_size', file, ...sizes, fixed })
}

async function checkHash(check: Check, name: BlobName): Promise<void> {
  const { deps, options } = check
  const stored = await deps.blobs.stat(name)
  const hash = stored && (await hashOf(deps.blobs, name))
  if (hash === name.sha256) return
  if (!stored || !hash) return checkSize(check, name)
  const fixed = options.fix && (await giveUpFile(deps, name, stored))
  options.report({ kind: 'wrong_hash', file: blobFile(name), fixed })
}

/** Undefined when it is not there. */
async function hashOf(blobs: BlobStorage, name: BlobName): Promise<string | undefined> {
  const stream = await blobs.open(name)
  if (!stream) return undefined
  const hash = createHash('sha256')
  for await (const chunk of stream) hash.update(chunk)
  return hash.digest('hex')
}

/**
 * A file of which the database knows nothing; a row is there before its file, and until after it. It is mended as
 * everything is deleted that nothing refers to: noted, and then deleted under the lock of its row, unless somebody was faster.
 */
async function checkOrphan(check: Check, blob: StoredBlob): Promise<void> {
  const { deps, options } = check
  const { name, bytes } = blob
  const row = await findBlobRow(deps.db, name)
  if (row) return checkFile(check, row, blob)
  if (!(await deps.blobs.stat(name))) return
  let fixed = false
  if (options.fix && isOld(deps, blob.storedAt)) {
    await registerBlob(deps.db, name, bytes, deps.now())
    fixed = await deleteIfUnreferenced(deps, name)
  }
  options.report({ kind: 'blob_without_row', file: blobFile(name), actual: bytes, fixed })
}

async function checkUnfinished({ deps, options }: Check): Promise<void> {
  let found = 0
  for await (const put of deps.blobs.listUnfinished()) if (isLeftover(put)) found++
  if (options.fix && found > 0) await deps.blobs.sweep()
  for (; found > 0; found--) options.report({ kind: 'unfinished_put', fixed: options.fix })
}

/** What each token keeps, by which its quota is reckoned. */
async function checkSums({ deps, options }: Check): Promise<void> {
  for (const { tokenId, noted, counted } of await listWrongSums(deps.db)) {
    if (options.fix) await deps.db.transaction().execute((trx) => correctSum(trx, tokenId))
    options.report({ kind: 'wrong_stored_sum', token: tokenId, actual: noted, expected: counted, fixed: options.fix })
  }
}
