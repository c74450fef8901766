import { type Kysely, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type Clip, selectClips } from '../clips/clips.store.ts'
import type { Album } from './albums.store.ts'

/** Clips of an album. */
export const MAX_ITEMS = 500

/**
 * Clips of an album that a visitor is shown, in its order: those that are ready, and neither deleted, expired nor
 * hidden. Private ones show in a private album alone. The caller has checked the visitor's access to the album.
 */
export const listShownItems = (
  db: Kysely<DB>,
  album: Pick<Album, 'id' | 'visibility'>,
  { now, limit = MAX_ITEMS }: { now: Date; limit?: number },
): Promise<Clip[]> =>
  selectShown(db, album, now).orderBy('album_items.position').orderBy('clips.id').limit(limit).execute()

/** One of these clips, while it is one of them. */
export const findShownItem = (
  db: Kysely<DB>,
  album: Pick<Album, 'id' | 'visibility'>,
  { clipId, now }: { clipId: string; now: Date },
): Promise<Clip | undefined> => selectShown(db, album, now).where('clips.id', '=', clipId).executeTakeFirst()

const selectShown = (db: Kysely<DB>, { id, visibility }: Pick<Album, 'id' | 'visibility'>, now: Date) =>
  selectClips(db)
    .innerJoin('album_items', 'album_items.clip_id', 'clips.id')
    .where('album_items.album_id', '=', id)
    .where(sql<boolean>`sources.state = 'ready'`)
    .where('clips.hidden_at', 'is', null)
    .where((where) => where.or([where('clips.expires_at', 'is', null), where('clips.expires_at', '>', now)]))
    .$if(visibility !== 'private', (query) => query.where('clips.visibility', '<>', 'private'))
