import { jsonb } from '@services/common/database'
import type { Kysely } from 'kysely'
import type { DB, Metadata } from '../db/tables.ts'

export interface AuditEntry {
  id: string
  payload: Metadata
  ipAddress?: string
  now: Date
}

export function insertAuditEntry(db: Kysely<DB>, entry: AuditEntry) {
  return db.insertInto('audit_log_entries').values({
    id: entry.id,
    payload: jsonb(entry.payload),
    ip_address: entry.ipAddress ?? '',
    created_at: entry.now,
  })
}
