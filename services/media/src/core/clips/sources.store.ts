import { jsonb } from '@services/common/database'
import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { MediaInfo } from '../../db/media-info.ts'
import type { DB, ExtraKind } from '../../db/tables.ts'
import type { ErrorCode } from '../../errors.ts'
import type { BlobName } from '../../store/blobs/blob-storage.ts'

/** Change it when the same bytes would come out differently: a clip uploaded again is then made again. */
const PIPELINE_VERSION = 2

// Spelled out: PostgreSQL matches a partial index only with what it can read when it plans, never with a parameter.
const notFailed = sql<boolean>`state <> 'failed'`
const processing = sql<boolean>`state = 'processing'`

export type SourceRow = Selectable<DB['sources']>

/** Where the bytes wait until they are transcoded; an ending of its own, so that they are never served. */
export const originalOf = (sha256: string): BlobName => ({ sha256, extension: 'source' })

export const isOriginal = ({ extension }: BlobName): boolean => extension === 'source'

/** The source these bytes made, being made or ready. */
export async function findSourceByContent(db: Kysely<DB>, sha256: string): Promise<SourceRow | undefined> {
  return db
    .selectFrom('sources')
    .selectAll()
    .where('sha256', '=', Buffer.from(sha256, 'hex'))
    .where('pipeline_version', '=', PIPELINE_VERSION)
    .where(notFailed)
    .executeTakeFirst()
}

export async function findSource(db: Kysely<DB>, id: string): Promise<SourceRow | undefined> {
  return db.selectFrom('sources').selectAll().where('id', '=', id).executeTakeFirst()
}

interface NewSource {
  id: string
  sha256: string
  tokenId: string | null
  bytes: number
  reservedBytes: number
  info: MediaInfo
  now: Date
}

/** Undefined when somebody else brought the same bytes first. The new source has one clip. */
export async function insertSource(trx: Transaction<DB>, source: NewSource): Promise<SourceRow | undefined> {
  return trx
    .insertInto('sources')
    .values({
      id: source.id,
      sha256: Buffer.from(source.sha256, 'hex'),
      token_id: source.tokenId,
      pipeline_version: PIPELINE_VERSION,
      state: 'processing',
      bytes: source.bytes,
      reserved_bytes: source.reservedBytes,
      info: jsonb(source.info),
      has_audio: source.info.hasAudio,
      clip_count: 1,
      created_at: source.now,
    })
    .onConflict((conflict) => conflict.columns(['sha256', 'pipeline_version']).where(notFailed).doNothing())
    .returningAll()
    .executeTakeFirst()
}

/** One clip more. Undefined when the source has failed or is gone. */
export async function attachToSource(trx: Transaction<DB>, id: string): Promise<SourceRow | undefined> {
  return trx
    .updateTable('sources')
    .set({ clip_count: sql`clip_count + 1`, unreferenced_at: null })
    .where('id', '=', id)
    .where(notFailed)
    .returningAll()
    .executeTakeFirst()
}

/** One clip less; with the last one the source is housekeeping's after a while. */
export async function detachFromSource(trx: Transaction<DB>, id: string, now: Date): Promise<void> {
  await trx
    .updateTable('sources')
    .set({
      clip_count: sql`clip_count - 1`,
      unreferenced_at: sql`case when clip_count = 1 then ${now}::timestamptz end`,
    })
    .where('id', '=', id)
    .execute()
}

/** False when another worker was first, or the source failed meanwhile. */
export async function markReady(
  trx: Transaction<DB>,
  source: { id: string; hasAudio: boolean; placeholder: Buffer; now: Date },
): Promise<boolean> {
  const marked = await trx
    .updateTable('sources')
    .set({
      state: 'ready',
      progress: 1,
      has_audio: source.hasAudio,
      placeholder: source.placeholder,
      finished_at: source.now,
    })
    .where('id', '=', source.id)
    .where('state', '=', 'processing')
    .returning('id')
    .executeTakeFirst()
  return marked !== undefined
}

/** The hash of the source that failed now; undefined when it was decided already. */
export async function markFailed(
  trx: Transaction<DB>,
  source: { id: string; code: ErrorCode; details: Record<string, unknown> | undefined; now: Date },
): Promise<string | undefined> {
  const marked = await trx
    .updateTable('sources')
    .set({
      state: 'failed',
      error_code: source.code,
      error_details: source.details ? jsonb(source.details) : null,
      finished_at: source.now,
    })
    .where('id', '=', source.id)
    .where('state', '=', 'processing')
    .returning('sha256')
    .executeTakeFirst()
  return marked?.sha256.toString('hex')
}

/** A source that was ready and has lost a file. False when it was not ready, or no longer. */
export async function markLost(trx: Transaction<DB>, id: string, now: Date): Promise<boolean> {
  const marked = await trx
    .updateTable('sources')
    .set({ state: 'failed', error_code: 'internal', finished_at: now })
    .where('id', '=', id)
    .where('state', '=', 'ready')
    .returning('id')
    .executeTakeFirst()
  return marked !== undefined
}

/** Locks the source if it is still being made; whose it is, and how often it was queued again. */
export async function lockProcessing(
  trx: Transaction<DB>,
  id: string,
): Promise<Pick<SourceRow, 'token_id' | 'requeue_count'> | undefined> {
  return trx
    .selectFrom('sources')
    .select(['token_id', 'requeue_count'])
    .where('id', '=', id)
    .where('state', '=', 'processing')
    .forUpdate()
    .executeTakeFirst()
}

export async function countRequeue(trx: Transaction<DB>, id: string): Promise<void> {
  await trx.updateTable('sources').set({ requeue_count: sql`requeue_count + 1` }).where('id', '=', id).execute()
}

/** Notes how far a source is, from 0 to 1 and only ever more. */
export async function setProgress(db: Kysely<DB>, id: string, progress: number): Promise<void> {
  await db
    .updateTable('sources')
    .set({ progress })
    .where('id', '=', id)
    .where('state', '=', 'processing')
    .where('progress', '<', progress)
    .execute()
}

/** Sources that are being made: all of them, and those that this token (null: somebody without one) brought. */
export async function countProcessing(
  db: Kysely<DB>,
  tokenId: string | null,
): Promise<{ all: number; ofToken: number }> {
  return db
    .selectFrom('sources')
    .select((column) => [
      column.fn.countAll<number>().as('all'),
      column.fn.countAll<number>().filterWhere('token_id', 'is not distinct from', tokenId).as('ofToken'),
    ])
    .where(processing)
    .executeTakeFirstOrThrow()
}

/** Notes what was made beside the four files. False when the source is gone, or had it already. */
export async function addExtras(trx: Transaction<DB>, id: string, extras: readonly ExtraKind[]): Promise<boolean> {
  const added = await trx
    .updateTable('sources')
    .set({ extras: [...extras] })
    .where('id', '=', id)
    .where('state', '=', 'ready')
    .where('extras', '=', sql<ExtraKind[]>`'{}'`)
    .returning('id')
    .executeTakeFirst()
  return added !== undefined
}

/** A failed source has no files: without a clip there is nothing to keep. */
export async function deleteFailedSource(trx: Transaction<DB>, id: string): Promise<void> {
  await trx
    .deleteFrom('sources')
    .where('id', '=', id)
    .where('state', '=', 'failed')
    .where('clip_count', '=', 0)
    .execute()
}

/** Takes a source away that is still to be made, if it has no clip any more. False when it has one again. */
export async function deleteAbandonedSource(trx: Transaction<DB>, id: string): Promise<boolean> {
  const deleted = await trx
    .deleteFrom('sources')
    .where('id', '=', id)
    .where('state', '=', 'processing')
    .where('clip_count', '=', 0)
    .returning('id')
    .executeTakeFirst()
  return deleted !== undefined
}
