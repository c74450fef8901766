import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { selectWithFiles } from '../lists/clip-lists.store.ts'

/**
 * Locks the clips of an album and those of its token among `ids`, in the order of their ids. Deletions, which take the
 * rows of clips away, lock in this order too: so neither waits for the other in a circle. Returns those of `ids` that
 * are neither deleted nor expired.
 */
export async function lockClipsOf(
  trx: Transaction<DB>,
  albumId: string,
  { ids, now }: { ids: readonly string[]; now: Date },
): Promise<Set<string>> {
  const items = sql.table('album_items')
  const { rows } = await sql<{ id: string; deleted_at: Date | null; expires_at: Date | null }>`
    select id, deleted_at, expires_at from ${sql.table('clips')}
    where id in (select unnest(${ids}::text[]) union select clip_id from ${items} where album_id = ${albumId})
      and token_id = (select token_id from ${sql.table('albums')} where id = ${albumId})
    order by id for no key update`.execute(trx)
  const there = rows.filter(({ deleted_at, expires_at }) => !deleted_at && (!expires_at || expires_at > now))
  return new Set(there.map(({ id }) => id))
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

/**
 * Makes the clips those of the album, in this order; the caller has locked the album and the clips in `added`. A clip
 * that leaves meanwhile, as it is deleted, does not return.
 */
export async function setItems(
  trx: Transaction<DB>,
  albumId: string,
  { ids, added, now }: { ids: readonly string[]; added: readonly string[]; now: Date },
): Promise<void> {
  await trx
    .deleteFrom('album_items')
    .where('album_id', '=', albumId)
    .where('clip_id', '<>', sql<string>`all(${ids}::text[])`)
    .execute()
  const wanted = sql`unnest(${ids}::text[]) with ordinality wanted (id, position)`
  const items = sql.table('album_items')
  await sql`update ${items} item set position = wanted.position from ${wanted}
    where item.album_id = ${albumId} and item.clip_id = wanted.id and item.position <> wanted.position`.execute(trx)
  if (added.length === 0) return
  await sql`insert into ${items} (album_id, clip_id, position, added_at)
    select ${albumId}, id, position, ${now}::timestamptz from ${wanted} where id = any(${added}::text[])`.execute(trx)
}

/** Adds clips behind all others of an album; the caller has locked them, unless they are new, and the album. */
export async function appendItems(
  trx: Transaction<DB>,
  albumId: string,
  { ids, now }: { ids: readonly string[]; now: Date },
): Promise<void> {
  const items = sql.table('album_items')
  await sql`insert into ${items} (album_id, clip_id, position, added_at)
    select ${albumId}, id, place + coalesce((select max(position) from ${items} where album_id = ${albumId}), 0),
      ${now}::timestamptz
    from unnest(${ids}::text[]) with ordinality added (id, place)`.execute(trx)
}
