// Posters that owners chose. A change is asked for, made by a job, and then shown; a later one takes its place.
import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** A change, by the id that the last one of its clip has. */
export interface PosterChange {
  clipId: string
  request: string
}

const NO_CHANGE = { poster_request: null, poster_wanted: null, poster_state: null, poster_requested_at: null }

/** Notes a change; the caller has locked the clip. */
export async function askForPoster(
  trx: Transaction<DB>,
  { clipId, request }: PosterChange,
  { at, now }: { at: number; now: Date },
): Promise<void> {
  await trx
    .updateTable('clips')
    .set({ poster_request: request, poster_wanted: at, poster_state: 'making', poster_requested_at: now })
    .where('id', '=', clipId)
    .where('deleted_at', 'is', null)
    .execute()
}

export async function isPosterWanted(db: Kysely<DB>, { clipId, request }: PosterChange): Promise<boolean> {
  const found = await db
    .selectFrom('clips')
    .select('id')
    .where('id', '=', clipId)
    .where('poster_request', '=', request)
    .executeTakeFirst()
  return found !== undefined
}

/** Locks the clip. Returns the variant that it shows; undefined if `request` is not its last change. */
export async function lockPoster(
  trx: Transaction<DB>,
  { clipId, request }: { clipId: string; request?: string },
): Promise<{ name: string | null; sourceId: string | null } | undefined> {
  return trx
    .selectFrom('clips')
    .select(['poster_name as name', 'source_id as sourceId'])
    .where('id', '=', clipId)
    .where('deleted_at', 'is', null)
    .$if(request !== undefined, (query) => query.where('poster_request', '=', request as string))
    .forUpdate()
    .executeTakeFirst()
}

/** Shows a poster; null: that of the source. The caller has locked the clip. */
export async function showPoster(
  trx: Transaction<DB>,
  clipId: string,
  { poster, now }: { poster: { at: number; name: string; placeholder: Buffer } | null; now: Date },
): Promise<void> {
  await trx
    .updateTable('clips')
    .set({
      poster_at: poster?.at ?? null,
      poster_name: poster?.name ?? null,
      poster_placeholder: poster?.placeholder ?? null,
      poster_number: sql<number>`poster_number + 1`,
      poster_changed_at: now,
      ...NO_CHANGE,
    })
    .where('id', '=', clipId)
    .execute()
}

/** Forgets a change that was not made. */
export const forgetChange = (trx: Transaction<DB>, clipId: string) =>
  trx.updateTable('clips').set(NO_CHANGE).where('id', '=', clipId).execute()

/** Fails a change; the poster stays. */
export async function failPoster(db: Kysely<DB>, { clipId, request }: PosterChange): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('clips')
    .set({ poster_state: 'failed' })
    .where('id', '=', clipId)
    .where('poster_request', '=', request)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Changes from before `before` that are not made. */
export const listWaitingPosters = (db: Kysely<DB>, before: Date, limit: number) =>
  db
    .selectFrom('clips')
    .select(['id as clipId', 'poster_request as request', 'source_id as sourceId'])
    .where(sql<boolean>`poster_state = 'making'`)
    .where('poster_requested_at', '<', before)
    .orderBy('poster_requested_at')
    .limit(limit)
    .execute()
