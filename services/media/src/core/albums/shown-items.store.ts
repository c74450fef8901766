import { type ExpressionBuilder, type InferResult, type Kysely, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type Clip, selectClips } from '../clips/clips.store.ts'
import type { Album } from './albums.store.ts'

/** Most clips of an album. */
export const MAX_ITEMS = 500

type ShownOf = Pick<Album, 'id' | 'visibility'>

/** Position of a clip in an album. */
export interface Position {
  position: number
  id: string
}

/**
 * Clips of an album that a visitor is shown, in its order: those that are ready, and neither deleted, expired nor
 * hidden. Private ones show in a private album alone. The caller has checked the visitor's access to the album.
 */
export const listShownItems = (
  db: Kysely<DB>,
  album: ShownOf,
  { now, limit = MAX_ITEMS, after }: { now: Date; limit?: number; after?: Position | undefined },
): Promise<(Clip & Position)[]> =>
  selectShown(db, album, now)
    .select('album_items.position')
    .$if(after !== undefined, (query) => query.where(isAfter(after as Position)))
    .orderBy('album_items.position')
    .orderBy('clips.id')
    .limit(limit)
    .execute()

/** These clips, the last added one first. */
export const listNewestItems = (
  db: Kysely<DB>,
  album: ShownOf,
  { now, limit }: { now: Date; limit: number },
): Promise<(Clip & { addedAt: Date })[]> =>
  selectShown(db, album, now)
    .select('album_items.added_at as addedAt')
    .orderBy('album_items.added_at', 'desc')
    .orderBy('album_items.position')
    .orderBy('clips.id')
    .limit(limit)
    .execute()

/** One of these clips; the first one if `clipId` is none of them. `before` and `after` are ids. */
export const findShownPlace = (
  db: Kysely<DB>,
  album: ShownOf,
  { now, clipId = '' }: { now: Date; clipId?: string | undefined },
): Promise<ShownPlace | undefined> =>
  db
    .selectFrom(selectPlaces(db, album, now).as('places'))
    .selectAll()
    .orderBy((eb) => eb('places.id', '=', clipId), 'desc')
    .orderBy('places.place')
    .limit(1)
    .executeTakeFirst() as Promise<ShownPlace | undefined>

export type ShownPlace = InferResult<ReturnType<typeof selectPlaces>>[number]

const selectPlaces = (db: Kysely<DB>, album: ShownOf, now: Date) =>
  selectShown(db, album, now).select(({ fn }) => [
    fn
      .agg<number>('row_number')
      .over((over) => over.orderBy('album_items.position').orderBy('clips.id'))
      .as('place'),
    fn.countAll<number>().over().as('total'),
    fn
      .agg<string | null>('lag', ['clips.id'])
      .over((over) => over.orderBy('album_items.position').orderBy('clips.id'))
      .as('before'),
    fn
      .agg<string | null>('lead', ['clips.id'])
      .over((over) => over.orderBy('album_items.position').orderBy('clips.id'))
      .as('after'),
  ])

/** Whether previews of an album may show the clip. */
export const isCover = ({ visibility, nsfw }: Pick<Clip, 'visibility' | 'nsfw'>): boolean =>
  visibility === 'public' && !nsfw

/** The first clip that previews of an album may show. */
export const findCover = (db: Kysely<DB>, album: ShownOf, now: Date): Promise<Clip | undefined> =>
  selectShown(db, album, now)
    .where('clips.visibility', '=', 'public')
    .where('clips.nsfw', '=', false)
    .orderBy('album_items.position')
    .orderBy('clips.id')
    .limit(1)
    .executeTakeFirst()

const isAfter =
  ({ position, id }: Position) =>
  (eb: ExpressionBuilder<DB, 'album_items' | 'clips'>) =>
    eb.or([
      eb('album_items.position', '>', position),
      eb.and([eb('album_items.position', '=', position), eb('clips.id', '>', id)]),
    ])

const selectShown = (db: Kysely<DB>, { id, visibility }: ShownOf, now: Date) =>
  selectClips(db)
    .innerJoin('album_items', 'album_items.clip_id', 'clips.id')
    .where('album_items.album_id', '=', id)
    .where('sources.state', '=', 'ready')
    .where('clips.hidden_at', 'is', null)
    .where((where) => where.or([where('clips.expires_at', 'is', null), where('clips.expires_at', '>', now)]))
    .$if(visibility !== 'private', (query) => query.where('clips.visibility', '<>', 'private'))

/**
 * The picture of each album for its owner: the first clip in it that is neither sensitive nor private. Absent without
 * one.
 */
export async function findCovers(db: Kysely<DB>, ids: readonly string[], now: Date): Promise<Map<string, Clip>> {
  const { rows } = await sql<{ albumId: string; clipId: string }>`
    select albums.id as "albumId", cover.id as "clipId" from ${sql.table('albums')} albums cross join lateral (
      select clip.id from ${sql.table('album_items')} item
        join ${sql.table('clips')} clip on clip.id = item.clip_id
        join ${sql.table('sources')} source on source.id = clip.source_id
      where item.album_id = albums.id and source.state = 'ready' and clip.hidden_at is null and not clip.nsfw
        and clip.visibility <> 'private' and (clip.expires_at is null or clip.expires_at > ${now})
      order by item.position, item.clip_id limit 1) cover
    where albums.id = any(${ids}::text[])`.execute(db)
  const clipIds = rows.map(({ clipId }) => clipId)
  const clips = await selectClips(db).where('clips.id', '=', sql<string>`any(${clipIds}::text[])`).execute()
  const byId = new Map(clips.map((clip) => [clip.id, clip]))
  return new Map(
    rows.flatMap(({ albumId, clipId }) => {
      const clip = byId.get(clipId)
      return clip ? [[albumId, clip] as const] : []
    }),
  )
}
