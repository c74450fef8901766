import { type Kysely, sql, type Transaction } from 'kysely'
import { isOriginal } from '../../core/clips/sources.store.ts'
import type { DB, RenditionKind } from '../../db/tables.ts'
import type { BlobName } from '../../store/blobs/blob-storage.ts'

/** Row of a file; `counted` is the actual number of references. */
export interface BlobRow {
  name: BlobName
  bytes: number
  referenceCount: number
  counted: number
  unreferencedAt: Date | null
}

// A literal, so that the planner matches the partial index of sources.
const processing = sql<boolean>`state = 'processing'`

/** Lists a page of files in the order of their names. */
export async function listBlobRows(db: Kysely<DB>, after: BlobName | undefined, limit: number): Promise<BlobRow[]> {
  const last = after ? keyOf(after) : { sha256: Buffer.alloc(0), extension: '' }
  const rows = await selectRows(db)
    .where((column) => column(column.refTuple('sha256', 'extension'), '>', column.tuple(last.sha256, last.extension)))
    .orderBy('sha256')
    .orderBy('extension')
    .limit(limit)
    .execute()
  return rows.map(toRow)
}

export async function findBlobRow(db: Kysely<DB>, name: BlobName): Promise<BlobRow | undefined> {
  const { sha256, extension } = keyOf(name)
  const row = await selectRows(db).where('sha256', '=', sha256).where('extension', '=', extension).executeTakeFirst()
  return row && toRow(row)
}

/** Locks the row against storing, deleting and changes of references, and counts again. */
export async function lockBlobRow(trx: Transaction<DB>, name: BlobName): Promise<BlobRow | undefined> {
  const { sha256, extension } = keyOf(name)
  await trx
    .selectFrom('blobs')
    .select('extension')
    .where('sha256', '=', sha256)
    .where('extension', '=', extension)
    .forUpdate()
    .execute()
  return findBlobRow(trx, name)
}

export async function correctCount(trx: Transaction<DB>, name: BlobName, count: number, now: Date): Promise<void> {
  const unreferenced_at = count === 0 ? now : null
  await updateRow(trx, name, { reference_count: count, unreferenced_at })
}

export async function correctSize(trx: Transaction<DB>, name: BlobName, bytes: number): Promise<void> {
  await updateRow(trx, name, { bytes })
}

/** Lists sources whose clips need this file. */
export async function listSourcesOf(db: Kysely<DB>, name: BlobName, limit: number): Promise<string[]> {
  const { sha256, extension } = keyOf(name)
  const sources = isOriginal(name)
    ? db.selectFrom('sources').select('id').where('sha256', '=', sha256).where(processing).limit(limit)
    : db
        .selectFrom('renditions')
        .select('source_id as id')
        .where('sha256', '=', sha256)
        .where('kind', '=', extension as RenditionKind)
        .limit(limit)
  const rows: { id: string }[] = await sources.execute()
  return rows.map(({ id }) => id)
}

// One statement reads stored and actual counts, which change in the same transactions: both are of one moment.
const selectRows = (db: Kysely<DB>) =>
  db.selectFrom('blobs').select((column) => [
    ...(['sha256', 'extension', 'bytes', 'reference_count', 'unreferenced_at'] as const),
    column
      .selectFrom('renditions')
      .select((inner) => inner.fn.countAll<number>().as('count'))
      .whereRef('renditions.sha256', '=', 'blobs.sha256')
      .whereRef('renditions.kind', '=', 'blobs.extension')
      .as('renditions'),
    column
      .selectFrom('sources')
      .select((inner) => inner.fn.countAll<number>().as('count'))
      .whereRef('sources.sha256', '=', 'blobs.sha256')
      .where(processing)
      .as('processing'),
  ])

const updateRow = (
  trx: Transaction<DB>,
  name: BlobName,
  values: { bytes?: number; reference_count?: number; unreferenced_at?: Date | null },
) => {
  const { sha256, extension } = keyOf(name)
  return trx.updateTable('blobs').set(values).where('sha256', '=', sha256).where('extension', '=', extension).execute()
}

type Row = Awaited<ReturnType<ReturnType<typeof selectRows>['execute']>>[number]

function toRow(row: Row): BlobRow {
  const name = { sha256: row.sha256.toString('hex'), extension: row.extension }
  return {
    name,
    bytes: row.bytes,
    referenceCount: row.reference_count,
    counted: (row.renditions ?? 0) + (isOriginal(name) ? (row.processing ?? 0) : 0),
    unreferencedAt: row.unreferenced_at,
  }
}

const keyOf = ({ sha256, extension }: BlobName) => ({ sha256: Buffer.from(sha256, 'hex'), extension })
