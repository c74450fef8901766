import { jsonb } from '@services/common/database'
import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { BlobName } from '../blobs/blob-storage.ts'
import type { DB, ExtraKind, RenditionKind } from '../db/tables.ts'
import type { ErrorCode } from '../errors.ts'
import type { MediaInfo } from '../probe/media-info.ts'

/** Change it when the same bytes would come out differently: a clip uploaded again is then made again. */
const PIPELINE_VERSION = 1

// Spelled out: PostgreSQL matches a partial index only with what it can read when it plans, never with a parameter.
const notFailed = sql<boolean>`state <> 'failed'`
const processing = sql<boolean>`state = 'processing'`

/** A part of a list in the order of ids: what comes after the last one of the part before. */
export interface Page {
  before: Date
  after: string | undefined
  limit: number
}

/** Before every id there is. */
const NIL = '00000000-0000-0000-0000-000000000000'

export type Source = Selectable<DB['sources']>

/** Where the bytes wait until they are transcoded; an ending of its own, so that they are never served. */
export const originalOf = (sha256: string): BlobName => ({ sha256, extension: 'source' })

export const isOriginal = ({ extension }: BlobName): boolean => extension === 'source'

/** The source these bytes made, being made or ready. */
export async function findSourceByContent(db: Kysely<DB>, sha256: string): Promise<Source | undefined> {
  return db
    .selectFrom('sources')
    .selectAll()
    .where('sha256', '=', Buffer.from(sha256, 'hex'))
    .where('pipeline_version', '=', PIPELINE_VERSION)
    .where(notFailed)
    .executeTakeFirst()
}

export async function findSource(db: Kysely<DB>, id: string): Promise<Source | undefined> {
  return db.selectFrom('sources').selectAll().where('id', '=', id).executeTakeFirst()
}

export interface NewSource {
  id: string
  sha256: string
  tokenId: string | null
  bytes: number
  info: MediaInfo
  now: Date
}

/** Undefined when somebody else brought the same bytes first. The new source has one clip. */
export async function insertSource(trx: Transaction<DB>, source: NewSource): Promise<Source | undefined> {
  return trx
    .insertInto('sources')
    .values({
      id: source.id,
      sha256: Buffer.from(source.sha256, 'hex'),
      token_id: source.tokenId,
      pipeline_version: PIPELINE_VERSION,
      state: 'processing',
      bytes: source.bytes,
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
export async function attachToSource(trx: Transaction<DB>, id: string): Promise<Source | undefined> {
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

/** What is being made since before `before`. */
export async function listProcessing(db: Kysely<DB>, { before, after, limit }: Page): Promise<string[]> {
  const rows = await db
    .selectFrom('sources')
    .select('id')
    .where('created_at', '<', before)
    .where(processing)
    .where('id', '>', after ?? NIL)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/** Locks the source if it is still being made; whose it is, and how often it was queued again. */
export async function lockProcessing(
  trx: Transaction<DB>,
  id: string,
): Promise<Pick<Source, 'token_id' | 'requeue_count'> | undefined> {
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

export interface NewRendition {
  kind: RenditionKind
  sha256: string
  bytes: number
  width: number
  height: number
}

export async function insertRenditions(
  trx: Transaction<DB>,
  sourceId: string,
  renditions: readonly NewRendition[],
): Promise<void> {
  const rows = renditions.map((rendition) => ({
    ...rendition,
    source_id: sourceId,
    sha256: Buffer.from(rendition.sha256, 'hex'),
  }))
  await trx.insertInto('renditions').values(rows).execute()
  const bytes = renditions.reduce((sum, rendition) => sum + rendition.bytes, 0)
  await trx
    .updateTable('sources')
    .set({ rendition_bytes: sql`rendition_bytes + ${bytes}` })
    .where('id', '=', sourceId)
    .execute()
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

/** The files of a source by kind. */
export async function findRenditions(
  db: Kysely<DB>,
  sourceId: string,
): Promise<Partial<Record<RenditionKind, Omit<NewRendition, 'kind'>>>> {
  const rows = await db.selectFrom('renditions').selectAll().where('source_id', '=', sourceId).execute()
  return Object.fromEntries(
    rows.map(({ kind, sha256, bytes, width, height }) => [
      kind,
      { sha256: sha256.toString('hex'), bytes, width, height },
    ]),
  )
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

/** Sources without a clip since `before`; what is being made is left until it is made. */
export async function listUnreferencedSources(db: Kysely<DB>, { before, after, limit }: Page): Promise<string[]> {
  const rows = await db
    .selectFrom('sources')
    .select('id')
    .where('unreferenced_at', '<', before)
    .where('state', '!=', 'processing')
    .where('id', '>', after ?? NIL)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
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

/** Locks the source if it still has no clip: from here on nobody can attach to it. */
export async function lockUnreferencedSource(trx: Transaction<DB>, id: string): Promise<boolean> {
  const locked = await trx
    .selectFrom('sources')
    .select('id')
    .where('id', '=', id)
    .where('clip_count', '=', 0)
    .where('state', '!=', 'processing')
    .forUpdate()
    .executeTakeFirst()
  return locked !== undefined
}

/** Deletes the source; the names of the files it referred to, whose references are now to be dropped. */
export async function deleteSource(trx: Transaction<DB>, id: string): Promise<BlobName[]> {
  const names = await deleteRenditions(trx, id)
  await trx.deleteFrom('sources').where('id', '=', id).execute()
  return names
}

/** The names of the files they were, whose references are now to be dropped. */
export async function deleteRenditions(trx: Transaction<DB>, sourceId: string): Promise<BlobName[]> {
  const renditions = await trx
    .deleteFrom('renditions')
    .where('source_id', '=', sourceId)
    .returning(['sha256', 'kind'])
    .execute()
  return renditions.map(({ sha256, kind }) => ({ sha256: sha256.toString('hex'), extension: kind }))
}
