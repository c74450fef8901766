import { deleteBatch, jsonb } from '@services/common/database'
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

export const deleteOldAuditEntries = (db: Kysely<DB>, before: Date, limit: number): Promise<number> =>
  deleteBatch(db, 'audit_log_entries', sql`created_at < ${before}`, limit)

/** Entries of refused sign-ins between two times; `from` undefined: from the beginning. */
export function deleteRefusedSignIns(
  db: Kysely<DB>,
  { from, before }: { from: Date | undefined; before: Date },
  limit: number,
): Promise<number> {
  const since = from ? sql`created_at >= ${from} and` : sql``
  const condition = sql`${since} created_at < ${before} and payload ->> 'action' = 'login_failed'`
  return deleteBatch(db, 'audit_log_entries', condition, limit)
}

/** Where a text is looked for, in whatever case: who acted, what was done, of which kind. */
export interface AuditSearch {
  scope: 'author' | 'action' | 'type'
  text: string
}

interface PageOfEntries {
  limit: number
  offset: number
}

const ENTRY_COLUMNS = ['id', 'payload', 'created_at', 'ip_address'] as const

/**
 * A page, newest first, and how many entries there are in all, counted up to `maxCounted` and no further: the log grows
 * with every refresh. One reading of the log serves both; pages past the counted ones are read by themselves.
 */
export async function listAuditEntries(
  db: Kysely<DB>,
  search: AuditSearch | undefined,
  page: PageOfEntries,
  maxCounted: number,
) {
  const { ids, total } = await countedPage(db, search, page, maxCounted)
  const isBeyond = total === maxCounted && page.offset + page.limit > maxCounted
  const entries = isBeyond ? readUncounted(db, search, page) : readEntries(db, ids)
  return { entries: await entries, total }
}

async function countedPage(
  db: Kysely<DB>,
  search: AuditSearch | undefined,
  { limit, offset }: PageOfEntries,
  maxCounted: number,
): Promise<{ ids: string[]; total: number }> {
  const { ids, total } = await db
    .with(
      (cte) => cte('counted').materialized(),
      () => newestFirst(db, search).select(['id', 'created_at']).limit(maxCounted),
    )
    .with('page', (qb) =>
      qb.selectFrom('counted').select('id').orderBy('created_at', 'desc').orderBy('id').limit(limit).offset(offset),
    )
    .selectNoFrom((eb) => [
      eb.selectFrom('counted').select(eb.fn.countAll<number>().as('total')).as('total'),
      sql<string[]>`array(select id from page)`.as('ids'),
    ])
    .executeTakeFirstOrThrow()
  return { ids, total: total ?? 0 }
}

const readEntries = (db: Kysely<DB>, ids: string[]) =>
  newestFirst(db, undefined).select(ENTRY_COLUMNS).where('id', '=', sql<string>`any(${ids}::uuid[])`).execute()

const readUncounted = (db: Kysely<DB>, search: AuditSearch | undefined, { limit, offset }: PageOfEntries) =>
  newestFirst(db, search).select(ENTRY_COLUMNS).limit(limit).offset(offset).execute()

const KEYS: Record<AuditSearch['scope'], readonly string[]> = {
  author: ['actor_username', 'actor_name'],
  action: ['action'],
  type: ['log_type'],
}

/** Ids only make the order a certain one. */
function newestFirst(db: Kysely<DB>, search: AuditSearch | undefined) {
  const query = db.selectFrom('audit_log_entries').orderBy('created_at', 'desc').orderBy('id')
  if (!search) return query
  const pattern = containing(search.text)
  return query.where((eb) =>
    eb.or(KEYS[search.scope].map((key) => eb(sql<string>`payload ->> ${sql.lit(key)}`, 'ilike', pattern))),
  )
}
