import { jsonb } from '@services/common/database/pool'
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import type { Insertable, Kysely, Selectable } from 'kysely'
import type { DB } from '../../db/tables.ts'

export type AuditEntry = Selectable<DB['audit_entries']>

export async function insertEntry(db: Kysely<DB>, entry: Insertable<DB['audit_entries']>): Promise<void> {
  await db.insertInto('audit_entries').values(entry).execute()
}

/** Replaces the details of an entry. */
export async function setDetails(db: Kysely<DB>, id: string, details: object): Promise<void> {
  await db
    .updateTable('audit_entries')
    .set({ details: jsonb(details) })
    .where('id', '=', id)
    .execute()
}

/** Newest first. */
export async function listEntries(
  db: Kysely<DB>,
  { target, limit }: { target: string | undefined; limit: number },
): Promise<AuditEntry[]> {
  return db
    .selectFrom('audit_entries')
    .selectAll()
    .$if(target !== undefined, (query) => query.where('target', '=', target as string))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

export const deleteEntriesBefore = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'audit_entries', { column: 'created_at', before })
