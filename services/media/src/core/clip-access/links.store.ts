// Rows of links, so that an owner can list them. The link itself: share-links.ts. Both changes lock the clip's row
// first: an end of all links leaves no row of one that is made at the same time.
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { setLinkSalt } from '../clips/clips.store.ts'
import { makeLinkSalt } from './share-links.ts'

/** Links of a clip that are listed. A script may make one for each visitor: further ones stay good. */
export const MOST_LISTED = 100

/** Notes a link, and forgets those past the newest. Returns the salt that signs it; undefined if the clip is gone. */
export async function addLink(
  trx: Transaction<DB>,
  { clipId, expiresAt, now }: { clipId: string; expiresAt: Date; now: Date },
): Promise<Buffer | undefined> {
  const salt = await setLinkSalt(trx, clipId, { fresh: makeLinkSalt() })
  if (!salt) return undefined
  await trx
    .insertInto('clip_links')
    .values({ clip_id: clipId, expires_at: expiresAt, created_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  await trx
    .deleteFrom('clip_links')
    .where('clip_id', '=', clipId)
    .where('expires_at', 'in', (eb) =>
      eb
        .selectFrom('clip_links')
        .select('expires_at')
        .where('clip_id', '=', clipId)
        .orderBy('created_at', 'desc')
        .orderBy('expires_at', 'desc')
        .offset(MOST_LISTED),
    )
    .execute()
  return salt
}

/** Ends all links by another salt. False if the clip is gone. */
export async function endLinks(trx: Transaction<DB>, clipId: string): Promise<boolean> {
  const salt = await setLinkSalt(trx, clipId, { fresh: makeLinkSalt(), replace: true })
  await trx.deleteFrom('clip_links').where('clip_id', '=', clipId).execute()
  return salt !== undefined
}

/** Links that have not expired, newest first. */
export const listLinks = (db: Kysely<DB>, clipId: string, now: Date): Promise<{ expiresAt: Date; createdAt: Date }[]> =>
  db
    .selectFrom('clip_links')
    .select(['expires_at as expiresAt', 'created_at as createdAt'])
    .where('clip_id', '=', clipId)
    .where('expires_at', '>', now)
    .orderBy('created_at', 'desc')
    .orderBy(sql`expires_at`, 'desc')
    .execute()

export const deleteExpiredLinks = (db: Kysely<DB>, now: Date) =>
  deleteInBatches(db, 'clip_links', { column: 'expires_at', before: now })
