import { jsonb } from '@services/common/database'
import { type Kysely, sql } from 'kysely'
import { containing } from '../db/like.ts'
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

/** Where a text is looked for, in whatever case: who acted, what was done, of which kind. */
export interface AuditSearch {
  scope: 'author' | 'action' | 'type'
  text: string
}

/** Newest first. */
export function listAuditEntries(
  db: Kysely<DB>,
  search: AuditSearch | undefined,
  { limit, offset }: { limit: number; offset: number },
) {
  return found(db, search)
    .select(['id', 'payload', 'created_at', 'ip_address'])
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(limit)
    .offset(offset)
    .execute()
}

/** Counts up to `limit` and no further: the log grows with every refresh of every session. */
export async function countAuditEntries(
  db: Kysely<DB>,
  search: AuditSearch | undefined,
  limit: number,
): Promise<number> {
  const { total } = await db
    .selectFrom(found(db, search).select('id').limit(limit).as('counted'))
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  return total
}

const KEYS: Record<AuditSearch['scope'], readonly string[]> = {
  author: ['actor_username', 'actor_name'],
  action: ['action'],
  type: ['log_type'],
}

function found(db: Kysely<DB>, search: AuditSearch | undefined) {
  const query = db.selectFrom('audit_log_entries')
  if (!search) return query
  const pattern = containing(search.text)
  return query.where((eb) =>
    eb.or(KEYS[search.scope].map((key) => eb(sql<string>`payload ->> ${sql.lit(key)}`, 'ilike', pattern))),
  )
}
