// Sources: the bytes behind clips, and their states. Clips of the same bytes share one source.
import { jsonb } from '@services/common/database/pool'
import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { MediaInfo } from '../../db/media-info.ts'
import type { DB, ExtraKind, Verdict } from '../../db/tables.ts'
import type { ErrorCode } from '../../errors.ts'
import type { BlobName } from '../../store/blobs/blob-storage.ts'

/** Raise it when the same bytes would give other files: a clip that is uploaded again is then transcoded again. */
const PIPELINE_VERSION = 4

// Literals: the planner matches a partial index with constants only, never with a parameter.
export const notFailed = sql<boolean>`state <> 'failed'`
const processing = sql<boolean>`state = 'processing'`

/** True when page and player can show the clip: it is ready, or its first files are stored. */
export const isShowable = sql<boolean>`${sql.ref('sources.state')} = 'ready'
  or (${sql.ref('sources.state')} = 'processing' and ${sql.ref('sources.has_first_files')})`.as('isShowable')

export type SourceRow = Selectable<DB['sources']>

/** Blob of the bytes until they are transcoded. No URL has its extension, so it is never served. */
export const originalOf = ({ sha256, file_sha256: file }: Pick<SourceRow, 'sha256' | 'file_sha256'>): BlobName =>
  originalNamed((file ?? sha256).toString('hex'))

export const originalNamed = (sha256: string): BlobName => ({ sha256, extension: 'source' })

export const isOriginal = ({ extension }: BlobName): boolean => extension === 'source'

/** The source of this key (`sourceKey`), unless it failed. */
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

type NewSource = Pick<SourceRow, 'id' | 'bytes' | 'info'> & {
  /** Key of the source. */
  sha256: string
  /** Hash of its file. */
  fileSha256: string
  tokenId: string | null
  reservedBytes: number
  now: Date
}

/** The new source has one clip. Undefined when the same bytes were added first by another request. */
export async function insertSource(trx: Transaction<DB>, source: NewSource): Promise<SourceRow | undefined> {
  return trx
    .insertInto('sources')
    .values({
      id: source.id,
      sha256: Buffer.from(source.sha256, 'hex'),
      file_sha256: source.fileSha256 === source.sha256 ? null : Buffer.from(source.fileSha256, 'hex'),
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

/** Facts that the files of a source show. */
interface MadeFacts {
  id: string
  hasAudio: boolean
  placeholder: Buffer
  info: MediaInfo
}

/** Returns false when the source was decided already. */
export async function markReady(
  trx: Transaction<DB>,
  { id, hasAudio, placeholder, info, now }: MadeFacts & { now: Date },
): Promise<boolean> {
  const marked = await trx
    .updateTable('sources')
    .set({ state: 'ready', progress: 1, has_audio: hasAudio, placeholder, info: jsonb(info), finished_at: now })
    .where('id', '=', id)
    .where('state', '=', 'processing')
    .returning('id')
    .executeTakeFirst()
  return marked !== undefined
}

/** Holds a source whose files are stored until the scanner has answered. False when it was held or decided already. */
export async function markHeld(trx: Transaction<DB>, { id, hasAudio, placeholder, info }: MadeFacts): Promise<boolean> {
  const marked = await trx
    .updateTable('sources')
    .set({ has_audio: hasAudio, placeholder, info: jsonb(info), held: true, has_first_files: false, progress: 1 })
    .where('id', '=', id)
    .where('state', '=', 'processing')
    .where('held', '=', false)
    .returning('id')
    .executeTakeFirst()
  return marked !== undefined
}

/** Makes a held source ready. Undefined when it was decided already. */
export async function markReleased(
  trx: Transaction<DB>,
  id: string,
  now: Date,
): Promise<Pick<SourceRow, 'sha256' | 'file_sha256'> | undefined> {
  return trx
    .updateTable('sources')
    .set({ state: 'ready', held: false, finished_at: now })
    .where('id', '=', id)
    .where('state', '=', 'processing')
    .where('held', '=', true)
    .returning(['sha256', 'file_sha256'])
    .executeTakeFirst()
}

/** False when there is a verdict already, or the source is neither ready nor held. */
export async function setVerdict(trx: Transaction<DB>, id: string, verdict: Verdict): Promise<boolean> {
  const judged = await trx
    .updateTable('sources')
    .set({ verdict })
    .where('id', '=', id)
    .where('verdict', 'is', null)
    .where((where) => where.or([where('state', '=', 'ready'), where('held', '=', true)]))
    .returning('id')
    .executeTakeFirst()
  return judged !== undefined
}

/** Notes facts of a source whose first files are stored before it is ready. False when it was decided already. */
export async function markShowable(
  trx: Transaction<DB>,
  { id, hasAudio, placeholder }: { id: string; hasAudio: boolean; placeholder: Buffer },
): Promise<boolean> {
  const marked = await trx
    .updateTable('sources')
    .set({ has_audio: hasAudio, placeholder, has_first_files: true })
    .where('id', '=', id)
    .where('state', '=', 'processing')
    .returning('id')
    .executeTakeFirst()
  return marked !== undefined
}

/** Returns the name of the original; undefined when it was decided already. */
export async function markFailed(
  trx: Transaction<DB>,
  source: { id: string; code: ErrorCode; details: Record<string, unknown> | undefined; now: Date },
): Promise<BlobName | undefined> {
  const { id, code, details, now } = source
  const marked = await trx
    .updateTable('sources')
    .set({ state: 'failed', error_code: code, error_details: details ? jsonb(details) : null, finished_at: now })
    .where('id', '=', id)
    .where('state', '=', 'processing')
    .returning(['sha256', 'file_sha256'])
    .executeTakeFirst()
  return marked && originalOf(marked)
}

/** Fails a ready source that lost a file. False when it was not ready. */
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

/** Locks the source if it is still processing. */
export async function lockProcessing(
  trx: Transaction<DB>,
  id: string,
): Promise<Pick<SourceRow, 'token_id' | 'requeue_count' | 'clip_count' | 'held' | 'info'> | undefined> {
  return trx
    .selectFrom('sources')
    .select(['token_id', 'requeue_count', 'clip_count', 'held', 'info'])
    .where('id', '=', id)
    .where('state', '=', 'processing')
    .forUpdate()
    .executeTakeFirst()
}

/** Locks the sources in the order of their ids. */
export async function lockSources(
  trx: Transaction<DB>,
  ids: readonly string[],
): Promise<Pick<SourceRow, 'id' | 'state'>[]> {
  return trx
    .selectFrom('sources')
    .select(['id', 'state'])
    .where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .orderBy('id')
    .forUpdate()
    .execute()
}

/** Overrules the scanner: later clips of the same bytes are shown as the clip is. */
export async function overruleVerdict(trx: Transaction<DB>, clipId: string, verdict: Verdict): Promise<void> {
  await trx
    .updateTable('sources')
    .set({ verdict: 'ok' })
    .where('id', '=', trx.selectFrom('clips').select('source_id').where('id', '=', clipId))
    .where('verdict', '=', verdict)
    .execute()
}

export async function countRequeue(trx: Transaction<DB>, id: string): Promise<void> {
  await trx.updateTable('sources').set({ requeue_count: sql`requeue_count + 1` }).where('id', '=', id).execute()
}

/** Notes the machine that begins to make a source. */
export async function setWorker(db: Kysely<DB>, id: string, worker: string): Promise<void> {
  await db.updateTable('sources').set({ worker }).where('id', '=', id).where('state', '=', 'processing').execute()
}

/** Stores the progress, which never decreases. */
export async function setProgress(db: Kysely<DB>, id: string, progress: number): Promise<void> {
  await db
    .updateTable('sources')
    .set({ progress })
    .where('id', '=', id)
    .where('state', '=', 'processing')
    .where('progress', '<', progress)
    .execute()
}

/** Numbers of processing sources: all, and those of one token, or of all callers without one. */
export interface Processing {
  all: number
  ofToken: number
}

/** Counts processing sources up to `most`; 0 counts none. `tokenId` null: of callers without a token. */
export async function countProcessing(db: Kysely<DB>, tokenId: string | null, most: Processing): Promise<Processing> {
  const all = db.selectFrom('sources').select('token_id').where(processing)
  const ofToken = tokenId === null ? all.where('token_id', 'is', null) : all.where('token_id', '=', tokenId)
  const count = (counted: typeof all) => db.selectFrom(counted.as('counted')).select(db.fn.countAll<number>().as('n'))
  return db
    .selectNoFrom([count(all.limit(most.all)).as('all'), count(ofToken.limit(most.ofToken)).as('ofToken')])
    .executeTakeFirstOrThrow() as Promise<Processing>
}

/** Returns false when the source is no longer ready, or has extras already. */
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

/** States and failures of the sources `ids` that exist. */
export async function findOutcomes(
  db: Kysely<DB>,
  ids: readonly string[],
): Promise<(Pick<SourceRow, 'id' | 'state' | 'info' | 'error_code' | 'error_details'> & { isShowable: boolean })[]> {
  return db
    .selectFrom('sources')
    .select(['id', 'state', 'info', 'error_code', 'error_details', isShowable])
    .where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .execute()
}
