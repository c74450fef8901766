// `blobs check`: compares stored files with the database. It runs beside a working service, so each difference is
// checked again under lock before it is reported or repaired.
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
import { lastEndedDeletion, registerBlob } from '../../store/blobs/blobs.store.ts'
import { deleteIfUnreferenced } from '../../store/blobs/keep-files.ts'
import {
  type BlobRow,
  correctCount,
  correctSize,
  correctSum,
  findBlobRow,
  listBlobRows,
  listWrongSums,
  lockBlobRow,
} from './check-blobs.store.ts'
import { giveUpFile } from './give-up-file.ts'

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
  /** `<sha256>.<ext>`; absent for an unfinished put, which has no name yet. */
  file?: string
  /** Owner of a wrong sum. */
  token?: string
  /** Bytes or references. */
  actual?: number
  expected?: number
  fixed: boolean
}

export type CheckDeps = Pick<Deps, 'db' | 'blobs' | 'announcements'> & EmitDeps

interface CheckOptions {
  deep: boolean
  fix: boolean
  report: (finding: Finding) => void
  /** Ends the check by its reason. */
  signal?: AbortSignal | undefined
}

type Check = CheckDeps & CheckOptions

const ROWS_AT_ONCE = 500

/** Reads both lists once, side by side. Throws StorageUnavailable; earlier repairs stay. */
export async function checkBlobs(deps: CheckDeps, options: CheckOptions) {
  const check = { ...deps, ...options }
  const totals = { files: 0, bytes: 0, rows: 0 }
  for await (const { row, blob } of sideBySide(listAllRows(deps), deps.blobs.list())) {
    options.signal?.throwIfAborted()
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

/** Pairs rows and files by name. A store that lists in another order costs second checks, and no false finding. */
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

async function checkCount(check: Check, { name, counted, referenceCount }: BlobRow): Promise<void> {
  const { db, fix, report, now } = check
  if (fix) {
    await db.transaction().execute(async (trx) => {
      const row = await lockBlobRow(trx, name)
      if (row && row.counted !== row.referenceCount) await correctCount(trx, name, row.counted, now())
    })
  }
  const numbers = { actual: referenceCount, expected: counted }
  report({ kind: 'wrong_reference_count', file: blobFile(name), ...numbers, fixed: fix })
}

/** Compares sizes, and hashes with `deep`. Of a file without references only a forgotten row is a finding. */
async function checkFile(check: Check, row: BlobRow, blob: StoredBlob | undefined): Promise<void> {
  if (row.counted === 0) {
    if (!blob && isOld(check, row.unreferencedAt)) await checkForgottenRow(check, row.name)
  } else if (blob?.bytes !== row.bytes) await checkSize(check, row.name)
  else if (check.deep) await checkHash(check, row.name)
}

const isOld = ({ now }: CheckDeps, since: Date | null) =>
  since !== null && now().getTime() - since.getTime() > LEFTOVER_AGE_MS

async function checkForgottenRow(check: Check, name: BlobName): Promise<void> {
  const row = await findBlobRow(check.db, name)
  if (!row || row.counted > 0 || !isOld(check, row.unreferencedAt) || (await check.blobs.stat(name))) return
  const fixed = check.fix && (await deleteIfUnreferenced(check, name))
  check.report({ kind: 'row_without_blob', file: blobFile(name), fixed })
}

/**
 * Checks a missing or short file again. A row with references has its file unless a deletion began (see `keepFiles`).
 */
async function checkSize(check: Check, name: BlobName): Promise<void> {
  const { db, blobs, fix, report } = check
  const seen = await findReferenced(check, name)
  if (!seen || seen.stored?.bytes === seen.row.bytes) return
  const { row, stored } = seen
  const file = blobFile(name)
  if (!stored) {
    const fixed = fix && (await giveUpFile(check, name, undefined))
    return report({ kind: 'row_without_blob', file, fixed })
  }
  const sizes = { actual: stored.bytes, expected: row.bytes }
  // The hash in the name decides whether file or row is wrong.
  const isRight = fix && (await hashOf(blobs, name)) === name.sha256
  if (isRight) await db.transaction().execute((trx) => correctSize(trx, name, stored.bytes))
  const fixed = fix && (isRight || (await giveUpFile(check, name, stored)))
  report({ kind: 'wrong_size', file, ...sizes, fixed })
}

/** Undefined for a file that had no reference meanwhile, or was deleted. A killed process may have left its mark. */
async function findReferenced({ db, blobs, now }: Check, name: BlobName) {
  const row = await findBlobRow(db, name)
  const isDeleting = row?.deletingSince && row.deletingSince >= lastEndedDeletion(now())
  if (!row || row.counted === 0 || isDeleting) return undefined
  const stored = await blobs.stat(name)
  const after = await findBlobRow(db, name)
  return after?.generation === row.generation && after.counted > 0 ? { row: after, stored } : undefined
}

async function checkHash(check: Check, name: BlobName): Promise<void> {
  const { blobs, fix, report } = check
  const stored = await blobs.stat(name)
  const hash = stored && (await hashOf(blobs, name))
  if (hash === name.sha256) return
  if (!stored || !hash) return checkSize(check, name)
  const fixed = fix && (await giveUpFile(check, name, stored))
  report({ kind: 'wrong_hash', file: blobFile(name), fixed })
}

/** Returns undefined for a missing file. */
async function hashOf(blobs: BlobStorage, name: BlobName): Promise<string | undefined> {
  const stream = await blobs.open(name)
  if (!stream) return undefined
  const hash = createHash('sha256')
  for await (const chunk of stream) hash.update(chunk)
  return hash.digest('hex')
}

/**
 * Checks a file without a row; a row exists before its file and outlives it. The repair adds a row without references
 * and deletes both under its lock, unless an upload refers to it first.
 */
async function checkOrphan(check: Check, blob: StoredBlob): Promise<void> {
  const { db, blobs, fix, report } = check
  const { name, bytes } = blob
  const row = await findBlobRow(db, name)
  if (row) return checkFile(check, row, blob)
  if (!(await blobs.stat(name))) return
  let fixed = false
  if (fix && isOld(check, blob.storedAt)) {
    await registerBlob(db, name, bytes, check.now())
    fixed = await deleteIfUnreferenced(check, name)
  }
  report({ kind: 'blob_without_row', file: blobFile(name), actual: bytes, fixed })
}

async function checkUnfinished({ blobs, fix, report }: Check): Promise<void> {
  let found = 0
  for await (const put of blobs.listUnfinished()) if (isLeftover(put)) found++
  if (fix && found > 0) await blobs.sweep()
  for (; found > 0; found--) report({ kind: 'unfinished_put', fixed: fix })
}

/** Checks the stored bytes of each token, which its quota is compared with. */
async function checkSums({ db, fix, report }: Check): Promise<void> {
  for (const { tokenId, recorded, counted } of await listWrongSums(db)) {
    if (fix) await db.transaction().execute((trx) => correctSum(trx, tokenId))
    report({ kind: 'wrong_stored_sum', token: tokenId, actual: recorded, expected: counted, fixed: fix })
  }
}
