// Albums and their clips: the rows, and which clips a visitor is shown. An album has clips of its own token alone. All
// changes lock clips first, then the album, as deletions of clips do. Requests: flows/albums/. Tests: beside them.
import { type InferResult, type Insertable, type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { isClipId } from '../clips/clip-id.ts'

const ALBUM_COLUMNS = [
  'albums.id',
  'albums.token_id as tokenId',
  'albums.title',
  'albums.description',
  'albums.visibility',
  'albums.link_salt as linkSalt',
  'albums.version',
  'albums.created_at as createdAt',
  'albums.updated_at as updatedAt',
] as const

/** Number of its clips, whatever their state. */
const count = sql<number>`(
  select count(*)::integer from ${sql.table('album_items')} item where item.album_id = ${sql.ref('albums.id')})`.as(
  'count',
)

const selectFields = (db: Kysely<DB>) => db.selectFrom('albums').select(ALBUM_COLUMNS)
export const selectAlbums = (db: Kysely<DB>) => selectFields(db).select(count)

export type Album = InferResult<ReturnType<typeof selectAlbums>>[number]

/** Takes any text as `id`. */
export const findAlbum = async (db: Kysely<DB>, id: string): Promise<Album | undefined> =>
  isClipId(id) ? selectAlbums(db).where('id', '=', id).executeTakeFirst() : undefined

/** The album of a visitor. Its clips are not counted: the time of an answer reveals no more than the answer. */
export const findForVisitor = async (db: Kysely<DB>, id: string): Promise<VisitedAlbum | undefined> =>
  isClipId(id) ? selectFields(db).where('id', '=', id).executeTakeFirst() : undefined

export type VisitedAlbum = Omit<Album, 'count'>

/**
 * Entity tag of fields and clips. Between two versions clips can only leave, by their deletion, so each count is
 * a state of its own.
 */
export const etagOf = ({ version, count }: Pick<Album, 'version' | 'count'>): string => `"${version}-${count}"`

/** Returns the album's salt; stores `fresh` if it has none, or if `replace` ends the links there are. */
export async function setAlbumSalt(
  db: Kysely<DB>,
  id: string,
  { fresh, replace = false }: { fresh: Buffer; replace?: boolean },
): Promise<Buffer | undefined> {
  const updated = await db
    .updateTable('albums')
    .set({ link_salt: replace ? fresh : sql<Buffer>`coalesce(link_salt, ${fresh})` })
    .where('id', '=', id)
    .returning('link_salt')
    .executeTakeFirst()
  return updated?.link_salt ?? undefined
}

/** Locks the album; its count is that of the moment after. */
export async function lockAlbum(trx: Transaction<DB>, id: string): Promise<Album | undefined> {
  const locked = await trx.selectFrom('albums').select('id').where('id', '=', id).forNoKeyUpdate().executeTakeFirst()
  return locked && findAlbum(trx, id)
}

/** Albums of a token, or of all tokens, newest first; `after` is the last one of the previous page. */
export async function listAlbums(
  db: Kysely<DB>,
  tokenId: string | undefined,
  { after, limit }: { after: Pick<Album, 'createdAt' | 'id'> | undefined; limit: number },
): Promise<Album[]> {
  let query = selectAlbums(db).orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit)
  if (tokenId !== undefined) query = query.where('token_id', '=', tokenId)
  if (after) {
    query = query.where((column) =>
      column(column.refTuple('created_at', 'id'), '<', column.tuple(after.createdAt, after.id)),
    )
  }
  return query.execute()
}

/** Counts the albums of a token; the caller has locked the token. */
export async function countAlbums(trx: Transaction<DB>, tokenId: string): Promise<number> {
  const { albums } = await trx
    .selectFrom('albums')
    .select((column) => column.fn.countAll<number>().as('albums'))
    .where('token_id', '=', tokenId)
    .executeTakeFirstOrThrow()
  return albums
}

/** Returns false when the id is taken. */
export async function insertAlbum(trx: Transaction<DB>, album: Insertable<DB['albums']>): Promise<boolean> {
  const inserted = await trx
    .insertInto('albums')
    .values(album)
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .executeTakeFirst()
  return inserted !== undefined
}

/** Fields that an owner writes. */
export type AlbumFields = Pick<Album, 'title' | 'description' | 'visibility'>

/** Begins a new version; the caller has locked the album. */
export async function updateAlbum(
  trx: Transaction<DB>,
  id: string,
  { now, ...fields }: Partial<AlbumFields> & { now: Date },
): Promise<void> {
  await trx
    .updateTable('albums')
    .set({ ...fields, version: sql`version + 1`, updated_at: now })
    .where('id', '=', id)
    .execute()
}

export async function deleteAlbumRow(trx: Transaction<DB>, id: string): Promise<void> {
  await trx.deleteFrom('albums').where('id', '=', id).execute()
}
