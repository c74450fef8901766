import { jsonb } from '@services/common/database/pool'
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import type { Insertable, Kysely, Selectable } from 'kysely'
import type { AuditAction, DB } from '../../db/tables.ts'

export type AuditEntry = Selectable<DB['audit_entries']>

export async function insertEntries(
  db: Kysely<DB>,
  entries: readonly Insertable<DB['audit_entries']>[],
): Promise<void> {
  await db.insertInto('audit_entries').values(entries).execute()
}

/** Replaces the details of an entry. */
export async function setDetails(db: Kysely<DB>, id: string, details: object): Promise<void> {
  await db
    .updateTable('audit_entries')
    .set({ details: jsonb(details) })
    .where('id', '=', id)
    .execute()
}

export interface AuditFilter {
  tokenId?: string | undefined
  action?: AuditAction | undefined
  /** Clip, token or dead letter. */
  target?: string | undefined
  from?: Date | undefined
  /** Time before which the acts were. */
  to?: Date | undefined
}

/** Lists acts with the names of their tokens, newest first. */
export async function listEntries(
  db: Kysely<DB>,
  { tokenId, action, target, from, to }: AuditFilter,
  { after, limit }: { after?: { createdAt: Date; id: string } | undefined; limit: number },
): Promise<(AuditEntry & { token_name: string | null })[]> {
  let query = db
    .selectFrom('audit_entries')
    .leftJoin('api_tokens', 'api_tokens.id', 'audit_entries.token_id')
    .selectAll('audit_entries')
    .select('api_tokens.name as token_name')
    .orderBy('audit_entries.created_at', 'desc')
    .orderBy('audit_entries.id', 'desc')
    .limit(limit)
  if (tokenId !== undefined) query = query.where('audit_entries.token_id', '=', tokenId)
  if (action !== undefined) query = query.where('action', '=', action)
  if (target !== undefined) query = query.where('target', '=', target)
  if (from) query = query.where('audit_entries.created_at', '>=', from)
  if (to) query = query.where('audit_entries.created_at', '<', to)
  if (after) {
    query = query.where((column) =>
      column(
        column.refTuple('audit_entries.created_at', 'audit_entries.id'),
        '<',
        column.tuple(after.createdAt, after.id),
      ),
    )
  }
  return query.execute()
}

export const deleteEntriesBefore = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'audit_entries', { column: 'created_at', before })
