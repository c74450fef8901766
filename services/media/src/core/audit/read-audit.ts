import type { Kysely } from 'kysely'
import type { AuditAction, DB } from '../../db/tables.ts'
import { isUuid } from '../../db/uuid.ts'
import { invalidField } from '../clips/clip-fields.ts'
import { readTime } from '../lists/read-filter.ts'
import { listEntries } from './audit.store.ts'

/** Filters of the log, as callers send them. */
type AuditQuery = Partial<Record<'token' | 'subject' | 'from' | 'to', string>> & { action?: AuditAction | undefined }

/** Reads a page of the log, newest first, with one entry more if there is a next page. Throws invalid_field. */
export async function readAudit(
  db: Kysely<DB>,
  { token, action, subject: target, from, to }: AuditQuery,
  { after, limit }: { after: { createdAt: Date; id: string } | undefined; limit: number },
) {
  if (token !== undefined && !isUuid(token)) throw invalidField('token', 'must be the id of a token')
  const filter = { tokenId: token, action, target, from: readTime('from', from), to: readTime('to', to) }
  const entries = await listEntries(db, filter, { after, limit: limit + 1 })
  return entries.map((entry) => ({ ...entry, createdAt: entry.created_at }))
}
