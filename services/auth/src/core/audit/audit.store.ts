import { deleteBatch, jsonb } from '@services/common/database'
import { type Kysely, sql } from 'kysely'
import { containing } from '../../db/like.ts'
import type { DB, Metadata } from '../../db/tables.ts'

export interface AuditEntry {
  id: string
  payload: Metadata
  ipAddress: string
  now: Date
}

export async function insertAuditEntry(db: Kysely<DB>, { id, payload, ipAddress, now }: AuditEntry): Promise<void> {
  await db
    .insertInto('audit_log_entries')
    .values({ id, payload: jsonb(payload), ip_address: ipAddress, created_at: now })
    .execute()
}

export const deleteOldAuditEntries = (db: Kysely<DB>, before: Date, limit: number): Promise<number> =>
  deleteBatch(db, 'audit_log_entries', sql`created_at < ${before}`, limit)

/** A place in the order of creation; the time as PostgreSQL writes it, to the microsecond. */
export interface EntryPlace {
  created_at: string
  id: string
}

/**
 * Housekeeping: deletes the refused sign-ins among the next `limit` entries by age, along the index on the time: one on the
 * action would have to be built under a lock. Resolves to the last entry seen, and whether more may follow.
 */
export async function deleteRefusedSignIns(
  db: Kysely<DB>,
  before: Date,
  after: EntryPlace | undefined,
  limit: number,
): Promise<{ last: EntryPlace | undefined; hasMore: boolean }> {
  const entries = sql.table('audit_log_entries')
  const time = after && sql`${after.created_at}::timestamptz`
  const isAfter = after ? sql`and created_at >= ${time} and (created_at > ${time} or id < ${after.id}::uuid)` : sql``
  const { rows } = await sql<EntryPlace & { seen: number }>`
    with looked_at as materialized (
      select id, created_at, payload ->> 'action' as action from ${entries}
      where created_at < ${before} ${isAfter}
      order by created_at, id desc limit ${limit}
    ), gone as (
      delete from ${entries} where id = any (array(
        select id from ${entries} where id = any (array(select id from looked_at where action = 'login_failed'))
        for update skip locked))
    )
    select id, created_at::text, (select count(*)::integer from looked_at) as seen
    from looked_at order by looked_at.created_at desc, id limit 1`.execute(db)
  const [last] = rows
  if (!last) return { last: after, hasMore: false }
  return { last: { id: last.id, created_at: last.created_at }, hasMore: last.seen === limit }
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
  const { rows } = await sql<{ ids: string[]; total: number }>`
    with counted as materialized (${newestFirst(db, search).select(['id', 'created_at']).limit(maxCounted)})
    select (select count(*) from counted) as total,
      array(select id from counted order by created_at desc, id limit ${limit} offset ${offset}) as ids`.execute(db)
  return rows[0] ?? { ids: [], total: 0 }
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
