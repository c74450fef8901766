import { countedPage, type PageOf, scannedPage, type Total, totalOf } from '@services/common/counted-page'
import { jsonb } from '@services/common/database'
import { BATCH, deleteInBatches } from '@services/common/delete-in-batches'
import { prepared } from '@services/common/prepared'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { containing } from '../../db/like.ts'
import type { Position } from '../../db/position.ts'
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

export const deleteOldAuditEntries = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'audit_log_entries', { column: 'created_at', before })

/**
 * Deletes refused sign-ins, along the index on the time: building one on the action takes a lock. Returns the position of the
 * next run, since no entry is written with an old time.
 */
export async function* deleteRefusedSignIns(
  db: Kysely<DB>,
  before: Date,
  after: Position | undefined,
): AsyncGenerator<void, Position | undefined> {
  const entries = sql.table('audit_log_entries')
  for (let last = after; ; ) {
    const time = last && sql`${last.created_at}::timestamptz`
    const isNext = last ? sql`and created_at >= ${time} and (created_at > ${time} or id < ${last.id}::uuid)` : sql``
    const { rows } = await sql<Position & { seen: number }>`
      with scanned as materialized (
        select id, created_at, payload ->> 'action' as action from ${entries}
        where created_at < ${before} ${isNext}
        order by created_at, id desc limit ${BATCH}
      ), gone as (
        delete from ${entries} where id = any (array(
          select id from ${entries} where id = any (array(select id from scanned where action = 'login_failed'))
          for update skip locked))
      )
      select id, created_at::text, (select count(*)::integer from scanned) as seen
      from scanned order by scanned.created_at desc, id limit 1`.execute(db)
    const [next] = rows
    if (next) last = { id: next.id, created_at: next.created_at }
    if (!next || next.seen < BATCH) return last
    yield
  }
}

/** Case-insensitive search for a part of the actor, the action or the log type. */
export interface AuditSearch {
  scope: 'author' | 'action' | 'type'
  text: string
}

interface ListedEntry {
  id: string
  payload: Metadata
  created_at: Date
  ip_address: string
}

/** Lists a page, newest first, and its total in one statement; a search reads entries until it has found enough. */
export async function listAuditEntries(
  db: Kysely<DB>,
  search: AuditSearch | undefined,
  page: PageOf,
): Promise<{ entries: ListedEntry[]; total: Total }> {
  const rows = search
    ? (await entriesOn(scannedPage(matching(search), NEWEST_FIRST, page)).execute(db)).rows
    : await selectPage(db, page)
  const entries = rows.flatMap(({ total: _, ...entry }) => (entry.id === null ? [] : [entry]))
  return { entries, total: await totalOf(db, matching(search), page, rows, entries.length) }
}

/** Ids break ties. */
const NEWEST_FIRST = sql.raw('created_at desc, id')

const selectPage = prepared((_: Kysely<DB>, page: PageOf) =>
  entriesOn(countedPage(matching(undefined), NEWEST_FIRST, page)),
)

/** An empty page has the total in a row without an entry. */
const entriesOn = (countedPage: RawBuilder<unknown>) => sql<{ total: number } & (ListedEntry | { id: null })>`
  with ${countedPage}
  select counted.total, entry.id, entry.payload, entry.created_at, entry.ip_address
  from counted left join page on true left join ${sql.table('audit_log_entries')} entry on entry.id = page.id
  order by page.created_at desc, page.id`

const KEYS: Record<AuditSearch['scope'], readonly string[]> = {
  author: ['actor_username', 'actor_name'],
  action: ['action'],
  type: ['log_type'],
}

function matching(search: AuditSearch | undefined) {
  const all = sql`select id, created_at from ${sql.table('audit_log_entries')}`
  if (!search) return all
  const pattern = containing(search.text)
  const conditions = KEYS[search.scope].map((key) => sql`payload ->> ${sql.lit(key)} ilike ${pattern}`)
  return sql`${all} where ${sql.join(conditions, sql` or `)}`
}
