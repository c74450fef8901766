// Clips and sources. A clip is one upload or import with its texts. A source is the bytes behind it, transcoded once
// and shared by all clips of these bytes. Tests: test/clip-life.test.ts, test/sharing.test.ts.
//
// source.state | meaning                                         | next
// processing   | transcode queued or running; a caller that waits for the mp4 alone may have it and the poster stored
// already
// |                                                 | ready, failed, or no row when its last clip is deleted
// ready        | four files stored; clips of the same bytes join | failed if `blobs check` finds a file lost
// failed       | `error_code` is the reason; shown for a week    | no row, nor its clips
import { jsonb } from '@services/common/database/pool'
import { type ExpressionBuilder, type InferResult, type Kysely, type NotNull, sql, type Transaction } from 'kysely'
import type { DB, HiddenReason, RenditionKind, SourceState } from '../../db/tables.ts'
import type { ErrorCode } from '../../errors.ts'
import { isShowable } from '../sources/sources.store.ts'
import { type Access, isExpired } from './access.ts'
import { type ClipFields, tagKey } from './clip-fields.ts'

type NewClip = ClipFields &
  Access &
  Pick<Clip, 'id' | 'tokenId' | 'sourceId' | 'sourceKind' | 'sourceUrl'> & {
    deleteTokenHash: Buffer | null
    /** The scanner's verdict on the same bytes hides the clip, or marks it as nsfw for good. */
    hiddenReason: HiddenReason | null
    isNsfwForced: boolean
    now: Date
  }

/** Returns false when the id is taken. */
export async function insertClip(trx: Transaction<DB>, clip: NewClip): Promise<boolean> {
  const inserted = await trx
    .insertInto('clips')
    .values({
      id: clip.id,
      token_id: clip.tokenId,
      source_id: clip.sourceId,
      title: clip.title,
      tags: clip.tags,
      tag_keys: clip.tags.map(tagKey),
      nsfw: clip.nsfw,
      nsfw_forced: clip.isNsfwForced,
      hidden_at: clip.hiddenReason && clip.now,
      hidden_reason: clip.hiddenReason,
      attribution: clip.attribution && jsonb(clip.attribution),
      source_kind: clip.sourceKind,
      source_url: clip.sourceUrl,
      delete_token_hash: clip.deleteTokenHash,
      visibility: clip.visibility,
      expires_at: clip.expiresAt,
      sliding_seconds: clip.slidingSeconds,
      created_at: clip.now,
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .executeTakeFirst()
  return inserted !== undefined
}

/** Columns that decide the visibility of a clip; a tombstone keeps them. */
export const ACCESS_COLUMNS = [
  'clips.visibility',
  'clips.expires_at as expiresAt',
  'clips.sliding_seconds as slidingSeconds',
  'clips.link_salt as linkSalt',
  'clips.hidden_at as hiddenAt',
  'clips.hidden_reason as hiddenReason',
] as const

/** File of a poster that the owner chose. */
interface PosterFile {
  sha256: string
  bytes: number
}

const CLIP_COLUMNS = [
  'clips.id',
  'clips.token_id as tokenId',
  'clips.source_id as sourceId',
  'clips.title',
  'clips.tags',
  'clips.nsfw',
  'clips.attribution',
  'clips.source_kind as sourceKind',
  'clips.source_url as sourceUrl',
  'clips.created_at as createdAt',
  ...ACCESS_COLUMNS,
  'sources.state',
  'sources.progress',
  'sources.error_code as errorCode',
  sql<string>`encode(coalesce(${sql.ref('sources.file_sha256')}, ${sql.ref('sources.sha256')}), 'hex')`.as('sha256'),
  'sources.bytes',
  'sources.info',
  'sources.has_audio as hasAudio',
  sql<Buffer | null>`coalesce(${sql.ref('clips.poster_placeholder')}, ${sql.ref('sources.placeholder')})`.as(
    'placeholder',
  ),
  'clips.poster_at as posterAt',
  'clips.poster_number as posterNumber',
  'clips.poster_wanted as posterWanted',
  'clips.poster_state as posterState',
  sql<PosterFile | null>`(select jsonb_build_object('sha256', encode(sha256, 'hex'), 'bytes', bytes)
    from ${sql.table('variants')} where source_id = ${sql.ref('sources.id')} and name = ${sql.ref('clips.poster_name')}
      and ${sql.ref('variants.state')} = 'stored')`.as('posterFile'),
  'sources.extras',
  isShowable,
] as const

/** Selects clips that are not deleted, with the state of their sources. */
export const selectClips = (db: Kysely<DB>) =>
  db
    .selectFrom('clips')
    .innerJoin('sources', 'sources.id', 'clips.source_id')
    .select(CLIP_COLUMNS)
    .$narrowType<{ sourceId: NotNull }>()

/** A clip with the state of its source; the hash in hex, `placeholder` a thumbhash. */
export type Clip = InferResult<ReturnType<typeof selectClips>>[number]

export type ClipAccess = Pick<
  Clip,
  'visibility' | 'expiresAt' | 'slidingSeconds' | 'linkSalt' | 'hiddenAt' | 'hiddenReason'
>

/** Salt of the album that a link names, if it is private and shows the clip. */
export interface OfAlbum {
  albumSalt?: Buffer | null
}

export type FoundClip =
  | (Clip & OfAlbum)
  | (ClipAccess & OfAlbum & { id: string; tokenId: string | null; state: 'deleted' })

/** Selects `albumSalt`; in the statement of the clip, so that time reveals neither clips nor albums. */
export const saltOf =
  (albumId = '') =>
  (eb: ExpressionBuilder<DB, 'clips'>) =>
    eb
      .selectFrom('album_items')
      .innerJoin('albums', 'albums.id', 'album_items.album_id')
      .select('albums.link_salt')
      .where('album_items.album_id', '=', albumId)
      .whereRef('album_items.clip_id', '=', 'clips.id')
      .where('albums.visibility', '=', 'private')
      .as('albumSalt')

/**
 * Finds a clip; with the salt of an album if `albumId` is given. An expired clip is `deleted`: housekeeping follows
 * minutes later.
 */
export async function findClip(
  db: Kysely<DB>,
  id: string,
  now: Date,
  albumId?: string,
): Promise<FoundClip | undefined> {
  const row = await db
    .selectFrom('clips')
    .leftJoin('sources', 'sources.id', 'clips.source_id')
    .select(CLIP_COLUMNS)
    .$if(albumId !== undefined, (query) => query.select(saltOf(albumId)))
    .where('clips.id', '=', id)
    .executeTakeFirst()
  if (!row) return undefined
  // The foreign key guarantees the columns of the source.
  return row.sourceId === null || isExpired(row, now) ? { ...row, state: 'deleted' } : (row as Clip)
}

/** Changes the given fields, but not `nsfw` of a clip for which that was decided. False when the clip was deleted. */
export async function updateClip(
  db: Kysely<DB>,
  id: string,
  changes: Partial<ClipFields> & { access?: Access },
): Promise<boolean> {
  const { attribution, tags, access, nsfw, ...plain } = changes
  const updated = await db
    .updateTable('clips')
    .set({
      ...plain,
      ...(nsfw !== undefined && { nsfw: sql<boolean>`${nsfw} or nsfw_forced` }),
      ...(tags && { tags, tag_keys: tags.map(tagKey) }),
      ...(attribution !== undefined && { attribution: attribution && jsonb(attribution) }),
      ...(access && {
        visibility: access.visibility,
        expires_at: access.expiresAt,
        sliding_seconds: access.slidingSeconds,
      }),
    })
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .returning('id')
    .executeTakeFirst()
  return updated !== undefined
}

/** Locks the clip, and returns the columns that decide its visibility. Undefined when it is deleted. */
export async function lockAccess(
  trx: Transaction<DB>,
  id: string,
): Promise<(Access & { createdAt: Date }) | undefined> {
  return trx
    .selectFrom('clips')
    .select(['visibility', 'expires_at as expiresAt', 'sliding_seconds as slidingSeconds', 'created_at as createdAt'])
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .forUpdate()
    .executeTakeFirst()
}

/** Moves the end of a lifetime, unless it has changed meanwhile. */
export async function extendLifetime(
  db: Kysely<DB>,
  { id, expiresAt, later }: { id: string; expiresAt: Date; later: Date },
): Promise<void> {
  await db
    .updateTable('clips')
    .set({ expires_at: later })
    .where('id', '=', id)
    .where('expires_at', '=', expiresAt)
    .where('deleted_at', 'is', null)
    .execute()
}

/** Returns the clip's salt; stores `fresh` if it has none, or if `replace` ends the links there are. */
export async function setLinkSalt(
  db: Kysely<DB>,
  id: string,
  { fresh, replace = false }: { fresh: Buffer; replace?: boolean },
): Promise<Buffer | undefined> {
  const updated = await db
    .updateTable('clips')
    .set({ link_salt: replace ? fresh : sql<Buffer>`coalesce(link_salt, ${fresh})` })
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .returning('link_salt')
    .executeTakeFirst()
  return updated?.link_salt ?? undefined
}

/** Locks the clip. Undefined when it is deleted. */
export async function lockClip(
  trx: Transaction<DB>,
  id: string,
): Promise<{ source_id: string | null; expires_at: Date | null; hidden_at: Date | null } | undefined> {
  return trx
    .selectFrom('clips')
    .select(['source_id', 'expires_at', 'hidden_at'])
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .forUpdate()
    .executeTakeFirst()
}

/** Hash of the delete token, for deleted clips too. */
export async function findDeleteTokenHash(db: Kysely<DB>, id: string): Promise<Buffer | undefined> {
  const found = await db.selectFrom('clips').select('delete_token_hash').where('id', '=', id).executeTakeFirst()
  return found?.delete_token_hash ?? undefined
}

/** State of a clip for its owner. */
export const ownerState = <State extends string>(clip: { state: State; hiddenAt: Date | null }): State | 'hidden' =>
  clip.hiddenAt && clip.state !== 'deleted' ? 'hidden' : clip.state

export interface ClipState {
  state: SourceState | 'hidden' | 'deleted'
  progress: number
  errorCode: ErrorCode | null
  /** Files that are stored while the clip is processing. */
  files?: readonly { kind: RenditionKind; bytes: number }[]
}

const firstFiles = sql<NonNullable<ClipState['files']>>`coalesce((
  select jsonb_agg(jsonb_build_object('kind', kind, 'bytes', bytes) order by kind) from ${sql.table('renditions')}
  where ${sql.ref('sources.state')} = 'processing' and not ${sql.ref('sources.held')} and source_id = ${sql.ref('sources.id')}), '[]')`.as(
  'files',
)

/** States of the clips `ids` that exist, for their owners. */
export async function findStates(db: Kysely<DB>, ids: readonly string[], now: Date): Promise<Map<string, ClipState>> {
  const rows = await db
    .selectFrom('clips')
    .leftJoin('sources', 'sources.id', 'clips.source_id')
    .select(['clips.id', 'sources.state', 'sources.progress', 'sources.error_code as errorCode', firstFiles])
    .select(['clips.hidden_at as hiddenAt', 'clips.expires_at as expiresAt'])
    .where('clips.id', '=', sql<string>`any(${ids}::text[])`)
    .execute()
  return new Map(
    rows.map(({ id, progress, errorCode, files, ...clip }) => {
      const state = isExpired(clip, now) ? null : clip.state
      return [
        id,
        { state: ownerState({ ...clip, state: state ?? 'deleted' }), progress: progress ?? 0, errorCode, files },
      ]
    }),
  )
}
