import { type Kysely, sql, type Transaction, type Updateable } from 'kysely'
import { isOriginal } from '../../core/sources/sources.store.ts'
import type { DB, RenditionKind } from '../../db/tables.ts'
import type { BlobName } from '../../store/blobs/blob-storage.ts'

export type BlobRow = ReturnType<typeof toRow>

/** Hash of the file, also of an edited source. */
const fileHash = sql<Buffer>`coalesce(${sql.ref('sources.file_sha256')}, ${sql.ref('sources.sha256')})`

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
  await updateRow(trx, name, { reference_count: count, unreferenced_at: count === 0 ? now : null })
}

export async function correctSize(trx: Transaction<DB>, name: BlobName, bytes: number): Promise<void> {
  await updateRow(trx, name, { bytes })
}

/** Lists sources whose clips need this file. */
export async function listSourcesOf(db: Kysely<DB>, name: BlobName, limit: number): Promise<string[]> {
  const { sha256, extension } = keyOf(name)
  const sources = isOriginal(name)
    ? db.selectFrom('sources').select('id').where(fileHash, '=', sha256).where(processing).limit(limit)
    : db
        .selectFrom('renditions')
        .select('source_id as id')
        .where('sha256', '=', sha256)
        .where('kind', '=', extension as RenditionKind)
        .union(
          db
            .selectFrom('variants')
            .select('source_id as id')
            .where('sha256', '=', sha256)
            .where('extension', '=', extension),
        )
        .limit(limit)
  const rows: { id: string }[] = await sources.execute()
  return rows.map(({ id }) => id)
}

// One statement reads stored and actual counts, which change in the same transactions: both are of one moment.
const selectRows = (db: Kysely<DB>) =>
  db.selectFrom('blobs').select((column) => [
    ...(['sha256', 'extension', 'bytes'] as const),
    ...(['reference_count as referenceCount', 'unreferenced_at as unreferencedAt'] as const),
    ...(['generation', 'deleting_since as deletingSince'] as const),
    column
      .selectFrom('renditions')
      .select((inner) => inner.fn.countAll<number>().as('count'))
      .whereRef('renditions.sha256', '=', 'blobs.sha256')
      .whereRef('renditions.kind', '=', 'blobs.extension')
      .as('renditions'),
    column
      .selectFrom('variants')
      .select((inner) => inner.fn.countAll<number>().as('count'))
      .whereRef('variants.sha256', '=', 'blobs.sha256')
      .whereRef('variants.extension', '=', 'blobs.extension')
      .as('variants'),
    column
      .selectFrom('sources')
      .select((inner) => inner.fn.countAll<number>().as('count'))
      .where(fileHash, '=', sql.ref<Buffer>('blobs.sha256'))
      .where(processing)
      .as('processing'),
  ])

const updateRow = (trx: Transaction<DB>, name: BlobName, values: Updateable<DB['blobs']>) => {
  const { sha256, extension } = keyOf(name)
  return trx.updateTable('blobs').set(values).where('sha256', '=', sha256).where('extension', '=', extension).execute()
}

type Row = Awaited<ReturnType<ReturnType<typeof selectRows>['execute']>>[number]

function toRow({ sha256, extension, renditions, variants, processing, ...row }: Row) {
  const name = { sha256: sha256.toString('hex'), extension }
  /** Actual number of references. */
  const counted = (renditions ?? 0) + (variants ?? 0) + (isOriginal(name) ? (processing ?? 0) : 0)
  return { ...row, name, counted }
}

const keyOf = ({ sha256, extension }: BlobName) => ({ sha256: Buffer.from(sha256, 'hex'), extension })

/**
 * Lists tokens whose stored sum of bytes is not the actual one. One statement reads both, because they change in the
 * same transactions.
 */
export async function listWrongSums(db: Kysely<DB>) {
  const isWrong = sql<boolean>`(coalesce(counted.clips, 0), coalesce(counted.bytes, 0), coalesce(counted.reserved, 0))
    <> (coalesce(recorded.clips, 0), coalesce(recorded.bytes, 0), coalesce(recorded.reserved_bytes, 0))`
  return db
    .selectFrom('api_tokens')
    .leftJoin('token_storage as recorded', 'recorded.token_id', 'api_tokens.id')
    .leftJoin(countStored(db).as('counted'), 'counted.token_id', 'api_tokens.id')
    .select([
      'api_tokens.id as tokenId',
      sql<number>`coalesce(recorded.bytes + recorded.reserved_bytes, 0)`.as('recorded'),
      sql<number>`coalesce(counted.bytes + counted.reserved, 0)`.as('counted'),
    ])
    .where(isWrong)
    .orderBy('api_tokens.id')
    .execute()
}

/** Locks the sum and counts again: concurrent changes are applied afterwards. */
export async function correctSum(trx: Transaction<DB>, tokenId: string): Promise<void> {
  await trx
    .insertInto('token_storage')
    .values({ token_id: tokenId })
    .onConflict((conflict) => conflict.column('token_id').doUpdateSet({ token_id: tokenId }))
    .execute()
  const counted = await countStored(trx).where('clips.token_id', '=', tokenId).executeTakeFirst()
  await trx
    .updateTable('token_storage')
    .set({ clips: counted?.clips ?? 0, bytes: counted?.bytes ?? 0, reserved_bytes: counted?.reserved ?? 0 })
    .where('token_id', '=', tokenId)
    .execute()
}

/** Counts like the triggers of `token_storage`, for all clips at once. */
const countStored = (db: Kysely<DB>) =>
  db
    .selectFrom('clips')
    .innerJoin('sources', 'sources.id', 'clips.source_id')
    .select([
      'clips.token_id',
      sql<number>`count(*)`.as('clips'),
      sql<number>`sum(sources.bytes + sources.rendition_bytes)::bigint`.as('bytes'),
      sql<number>`coalesce(sum(sources.reserved_bytes) filter (where sources.state = 'processing'), 0)::bigint`.as(
        'reserved',
      ),
    ])
    .where('clips.token_id', 'is not', null)
    .where('sources.state', '!=', 'failed')
    .groupBy('clips.token_id')
