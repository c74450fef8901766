import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { selectWithFiles } from '../lists/clip-lists.store.ts'

/** Locks those of the clips that are this token's and neither deleted nor expired, in the order of their ids. */
export async function lockOwnClips(
  trx: Transaction<DB>,
  tokenId: string,
  { ids, now }: { ids: readonly string[]; now: Date },
): Promise<string[]> {
  const clips = await trx
    .selectFrom('clips')
    .select('id')
    .where('id', '=', sql<string>`any(${ids}::text[])`)
    .where('token_id', '=', tokenId)
    .where('deleted_at', 'is', null)
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
    .orderBy('id')
    .forNoKeyUpdate()
    .execute()
  return clips.map(({ id }) => id)
}

/** Albums that one clip is in. */
export const MAX_ALBUMS_OF_CLIP = 50

/** Clips that are in as many albums as they may be; the caller has locked the clips. */
export async function listInMostAlbums(trx: Transaction<DB>, ids: readonly string[]): Promise<string[]> {
  const found = await trx
    .selectFrom('album_items')
    .select('clip_id')
    .where('clip_id', '=', sql<string>`any(${ids}::text[])`)
    .groupBy('clip_id')
    .having((column) => column.fn.countAll(), '>=', MAX_ALBUMS_OF_CLIP)
    .execute()
  return found.map(({ clip_id }) => clip_id)
}

/** Clips of an album in its order, whatever their state. */
export async function listItemIds(db: Kysely<DB>, albumId: string): Promise<string[]> {
  const items = await db
    .selectFrom('album_items')
    .select('clip_id')
    .where('album_id', '=', albumId)
    .orderBy('position')
    .orderBy('clip_id')
    .execute()
  return items.map(({ clip_id }) => clip_id)
}

/** Clips of an album in its order, for its owner; `after` is the last one of the previous page. */
export const listItems = (
  db: Kysely<DB>,
  albumId: string,
  { after, limit, now }: { after: { key: number; id: string } | undefined; limit: number; now: Date },
) =>
  selectWithFiles(db, now)
    .innerJoin('album_items', 'album_items.clip_id', 'clips.id')
    .select('album_items.position')
    .where('album_items.album_id', '=', albumId)
    .$if(after !== undefined, (query) =>
      query.where(sql<boolean>`(album_items.position, album_items.clip_id) > (${after?.key}::bigint, ${after?.id})`),
    )
    .orderBy('album_items.position')
    .orderBy('album_items.clip_id')
    .limit(limit)
    .execute()

/** Makes the clips those of the album, in this order; the caller has locked the album. */
export async function setItems(
  trx: Transaction<DB>,
  albumId: string,
  { ids, now }: { ids: readonly string[]; now: Date },
): Promise<void> {
  await trx
    .deleteFrom('album_items')
    .where('album_id', '=', albumId)
    .where('clip_id', '<>', sql<string>`all(${ids}::text[])`)
    .execute()
  await trx
    .insertInto('album_items')
    .columns(['album_id', 'clip_id', 'position', 'added_at'])
    .expression(
      sql`select ${albumId}, id, position, ${now}::timestamptz
        from unnest(${ids}::text[]) with ordinality item (id, position)`,
    )
    .onConflict((conflict) =>
      conflict
        .columns(['album_id', 'clip_id'])
        .doUpdateSet((row) => ({ position: row.ref('excluded.position') }))
        .whereRef('album_items.position', '<>', 'excluded.position'),
    )
    .execute()
}

/** Adds a clip behind all others of an album; the caller has locked the album. */
export async function appendItem(
  trx: Transaction<DB>,
  albumId: string,
  { clipId, now }: { clipId: string; now: Date },
): Promise<void> {
  await trx
    .insertInto('album_items')
    .columns(['album_id', 'clip_id', 'position', 'added_at'])
    .expression(
      sql`select ${albumId}, ${clipId}, coalesce(max(position), 0) + 1, ${now}::timestamptz
        from ${sql.table('album_items')} where album_id = ${albumId}`,
    )
    .execute()
}
