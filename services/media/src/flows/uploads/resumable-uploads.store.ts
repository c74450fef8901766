import { type Insertable, type Kysely, type Selectable, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'

export type ResumableUpload = Selectable<DB['resumable_uploads']>

export async function insertUpload(db: Kysely<DB>, upload: Insertable<DB['resumable_uploads']>): Promise<void> {
  await db.insertInto('resumable_uploads').values(upload).execute()
}

export async function findUpload(db: Kysely<DB>, id: string): Promise<ResumableUpload | undefined> {
  return db.selectFrom('resumable_uploads').selectAll().where('id', '=', id).executeTakeFirst()
}

export async function countUnfinished(db: Kysely<DB>, ownerKey: string, now: Date): Promise<number> {
  const { count } = await db
    .selectFrom('resumable_uploads')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('owner_key', '=', ownerKey)
    .where('clip_id', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function extendUpload(db: Kysely<DB>, id: string, expiresAt: Date): Promise<void> {
  await db.updateTable('resumable_uploads').set({ expires_at: expiresAt }).where('id', '=', id).execute()
}

/** Sets the length of an upload that has none. False when it has another one. */
export async function declareLength(db: Kysely<DB>, id: string, bytes: number): Promise<boolean> {
  const declared = await db
    .updateTable('resumable_uploads')
    .set({ bytes })
    .where('id', '=', id)
    .where((where) => where.or([where('bytes', 'is', null), where('bytes', '=', bytes)]))
    .returning('id')
    .executeTakeFirst()
  return declared !== undefined
}

/** Returns false when the upload has a clip already or was deleted. */
export async function setUploadClip(db: Kysely<DB>, id: string, clipId: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('resumable_uploads')
    .set({ clip_id: clipId })
    .where('id', '=', id)
    .where('clip_id', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Returns false when there is no such upload. */
export async function deleteUploadRow(db: Kysely<DB>, id: string): Promise<boolean> {
  const { numDeletedRows } = await db.deleteFrom('resumable_uploads').where('id', '=', id).executeTakeFirst()
  return numDeletedRows > 0n
}

/** Deletes up to `limit` expired uploads; returns their ids. */
export async function deleteExpiredUploads(db: Kysely<DB>, now: Date, limit: number): Promise<string[]> {
  const rows = await db
    .deleteFrom('resumable_uploads')
    .where('id', 'in', (select) =>
      select.selectFrom('resumable_uploads').select('id').where('expires_at', '<=', now).limit(limit),
    )
    .returning('id')
    .execute()
  return rows.map(({ id }) => id)
}

/** Returns those of `ids` whose partial file is still needed. */
export async function findContinuable(db: Kysely<DB>, ids: readonly string[]): Promise<string[]> {
  const rows = await db
    .selectFrom('resumable_uploads')
    .select('id')
    .where('id', '=', sql<string>`any(${ids}::text[])`)
    .where('clip_id', 'is', null)
    .execute()
  return rows.map(({ id }) => id)
}
