import { type Kysely, sql, type Transaction } from 'kysely'
import { type DB, EXTRA_KINDS, RENDITION_KINDS, type RenditionKind } from '../../db/tables.ts'
import type { BlobName } from '../../store/blobs/blob-storage.ts'
import { ACCESS_COLUMNS, type ClipAccess, type OfAlbum, saltOf } from './clips.store.ts'

const HASH_IN_HEX = sql<string>`encode(sha256, 'hex')`.as('sha256')

export const FILE_COLUMNS = ['kind', 'bytes', 'width', 'height', 'copied', HASH_IN_HEX] as const

/** A file of a clip; the hash in hex. */
export interface ClipFile {
  kind: RenditionKind
  bytes: number
  width: number
  height: number
  sha256: string
  copied: boolean
}

export async function insertRenditions(
  trx: Transaction<DB>,
  sourceId: string,
  renditions: readonly (Omit<ClipFile, 'copied'> & { copied?: boolean | undefined })[],
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

export async function findRenditions(
  db: Kysely<DB>,
  sourceId: string,
): Promise<Partial<Record<RenditionKind, Omit<ClipFile, 'kind'>>>> {
  const files = await listFiles(db, sourceId)
  return Object.fromEntries(files.map(({ kind, ...file }) => [kind, file]))
}

/** Returns the names of the files; the caller drops their references. */
export async function deleteRenditions(
  trx: Transaction<DB>,
  sourceId: string,
  kinds: readonly RenditionKind[] = RENDITION_KINDS,
): Promise<BlobName[]> {
  return trx
    .deleteFrom('renditions')
    .where('source_id', '=', sourceId)
    .where('kind', 'in', kinds)
    .returning([HASH_IN_HEX, 'kind as extension'])
    .execute()
}

/** The same for the extras; the source may get new ones. */
export async function deleteExtras(trx: Transaction<DB>, sourceId: string): Promise<BlobName[]> {
  const bytes = trx
    .selectFrom('renditions')
    .select(({ fn }) => fn.coalesce(fn.sum<number>('bytes'), sql<number>`0`).as('bytes'))
    .where('source_id', '=', sourceId)
    .where('kind', 'in', EXTRA_KINDS)
  // Lock order: the source comes before its files.
  await trx
    .updateTable('sources')
    .set({ extras: [], rendition_bytes: sql`rendition_bytes - (${bytes})` })
    .where('id', '=', sourceId)
    .execute()
  return deleteRenditions(trx, sourceId, EXTRA_KINDS)
}

/** Poster that the owner chose; the number of changes is 0 for a clip that always had the same. */
export interface OwnPoster {
  posterAt: number | null
  posterNumber: number
}

export type FoundFile = ClipAccess & OfAlbum & FileState

type FileState =
  /** `addedAt`: when the clip was added. Those of source and files would reveal an earlier upload. */
  | ({ state: 'ready'; sha256: string; bytes: number; addedAt: Date; title: string | null } & OwnPoster)
  | { state: 'processing'; progress: number }
  /** The source failed, or has no such extra. */
  | { state: 'absent' }
  | { state: 'deleted' }

/** Returns undefined for an unknown clip. `albumId`: see findClip. */
export async function findFile(
  db: Kysely<DB>,
  id: string,
  kind: RenditionKind,
  albumId?: string,
): Promise<FoundFile | undefined> {
  const row = await db
    .selectFrom('clips')
    .leftJoin('sources', 'sources.id', 'clips.source_id')
    .leftJoin('renditions', (join) =>
      join.onRef('renditions.source_id', '=', 'clips.source_id').on('renditions.kind', '=', kind),
    )
    .leftJoin('variants', (join) =>
      join
        .onRef('variants.source_id', '=', 'clips.source_id')
        .onRef('variants.name', '=', 'clips.poster_name')
        .on('variants.state', '=', 'stored')
        .on(sql<boolean>`${kind} = 'jpg'`),
    )
    .select(ACCESS_COLUMNS)
    .select(['clips.poster_at as posterAt', 'clips.poster_number as posterNumber', 'clips.poster_changed_at'])
    .select(['clips.title', 'clips.created_at as addedAt', 'sources.state', 'sources.progress', 'sources.held'])
    .select(({ fn }) => [
      fn.coalesce('variants.sha256', 'renditions.sha256').as('sha256'),
      fn.coalesce('variants.bytes', 'renditions.bytes').as('bytes'),
    ])
    .$if(albumId !== undefined, (query) => query.select(saltOf(albumId)))
    .where('clips.id', '=', id)
    .executeTakeFirst()
  if (!row) return undefined
  const { state, held, sha256, progress, bytes, title, posterAt, posterNumber, poster_changed_at, ...rest } = row
  const { addedAt: clipAddedAt, ...access } = rest
  const addedAt = kind === 'jpg' ? (poster_changed_at ?? clipAddedAt) : clipAddedAt
  if (state === null) return { ...access, state: 'deleted' }
  if (state === 'failed' || (!sha256 && isExtra(kind))) return { ...access, state: 'absent' }
  if (state === 'processing' && (held || !sha256)) return { ...access, state, progress: progress ?? 0 }
  if (!sha256 || bytes === null) throw new Error(`clip ${id} is ready without its ${kind}`)
  const poster = { posterAt, posterNumber }
  return { ...access, ...poster, state: 'ready', sha256: sha256.toString('hex'), bytes, addedAt, title }
}

export const isExtra = (kind: string): boolean => EXTRA_KINDS.some((extra) => extra === kind)

export async function listFiles(db: Kysely<DB>, sourceId: string): Promise<ClipFile[]> {
  return db.selectFrom('renditions').select(FILE_COLUMNS).where('source_id', '=', sourceId).orderBy('kind').execute()
}

/** Whether one of the source's own files is this one. */
export async function hasFile(db: Kysely<DB>, sourceId: string, { sha256, extension }: BlobName): Promise<boolean> {
  const found = await db
    .selectFrom('renditions')
    .select('kind')
    .where('source_id', '=', sourceId)
    .where('kind', '=', extension as RenditionKind)
    .where('sha256', '=', Buffer.from(sha256, 'hex'))
    .executeTakeFirst()
  return found !== undefined
}
