import {
  countedPage,
  MAX_COUNTED,
  type PageOf,
  scannedPage,
  type Total,
  totalOf,
} from '@services/common/database/counted-page'
import { prepared } from '@services/common/database/prepared-statement'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { cutPage, type Position } from '../../db/position.ts'
import type { DB, Metadata } from '../../db/tables.ts'
import { type AuditRange, type AuditSearch, allWithin, found } from './search-audit.store.ts'

export interface ListedEntry {
  id: string
  payload: Metadata
  created_at: Date
  ip_address: string
}

/** Entries to list; all without a search or range. */
export interface AuditFilter extends Pick<AuditRange, 'from' | 'before'> {
  search?: AuditSearch | undefined
}

/** Lists a page, newest first, and its total in one statement. */
export async function listAuditEntries(
  db: Kysely<DB>,
  { search, ...range }: AuditFilter,
  page: PageOf,
): Promise<{ rows: ListedEntry[]; total: Total }> {
  const matching = search && (await found(db, search, MAX_COUNTED + page.limit, range))
  const rows = matching
    ? await alongIndexes(db, entriesOn(scannedPage(matching.newest, NEWEST_FIRST, page)))
    : await pageOfAll(db, range, page)
  const entries = rows.flatMap(({ total: _, ...entry }) => (entry.id === null ? [] : [entry]))
  return { rows: entries, total: await totalOf(db, matching?.all ?? allWithin(range), page, rows, entries.length) }
}

/** Above some 10,000 entries per user the planner sorts them all: 1 s instead of 20 ms for twenty such users. */
async function alongIndexes<T>(db: Kysely<DB>, select: RawBuilder<T>): Promise<T[]> {
  return db.transaction().execute(async (trx) => {
    await sql`set local enable_bitmapscan = off`.execute(trx)
    return (await select.execute(trx)).rows
  })
}

/**
 * Lists entries after a position, newest first, at a cost that does not grow with it; `next` is the last one's, if more
 * follow.
 */
export async function listAuditEntriesAfter(
  db: Kysely<DB>,
  { search, ...times }: AuditFilter,
  { limit, after }: { limit: number; after: Position | undefined },
): Promise<{ entries: ListedEntry[]; next: Position | undefined }> {
  const range = { ...times, after }
  const matching = search ? (await found(db, search, limit + 1, range)).newest : allWithin(range)
  const { rows } = await sql<ListedEntry & { place: string }>`
    with page as (${matching} order by ${NEWEST_FIRST} limit ${limit + 1})
    select to_json(page.created_at) #>> '{}' as place, entry.id, entry.payload, entry.created_at, entry.ip_address
    from page join ${sql.table('audit_log_entries')} entry on entry.id = page.id
    order by page.created_at desc, page.id`.execute(db)
  const { page: entries, next } = cutPage(rows, limit)
  return { entries, next }
}

/** Entries from `from` until `before`, oldest first; `after` is the position of the last one before them. */
export async function listOldestAuditEntries(
  db: Kysely<DB>,
  { from, before, after, limit }: { from: Date | undefined; before: Date; after: Position | undefined; limit: number },
): Promise<(ListedEntry & { place: string })[]> {
  const isFrom = from ? sql`and created_at >= ${from}` : sql``
  const time = after && sql`${after.created_at}::timestamptz`
  const isNext = after ? sql`and created_at >= ${time} and (created_at > ${time} or id < ${after.id}::uuid)` : sql``
  const { rows } = await sql<ListedEntry & { place: string }>`
    select id, payload, created_at, ip_address, created_at::text as place from ${sql.table('audit_log_entries')}
    where created_at < ${before} ${isFrom} ${isNext}
    order by created_at, id desc limit ${limit}`.execute(db)
  return rows
}

export async function findAuditPosition(db: Kysely<DB>, id: string): Promise<Position | undefined> {
  return db
    .selectFrom('audit_log_entries')
    .select(['id', sql<string>`created_at::text`.as('created_at')])
    .where('id', '=', id)
    .executeTakeFirst()
}

/** Ids break ties. */
const NEWEST_FIRST = sql.raw('created_at desc, id')

async function pageOfAll(db: Kysely<DB>, range: AuditRange, page: PageOf) {
  if (!range.from && !range.before) return selectPage(db, page)
  return (await entriesOn(countedPage(allWithin(range), NEWEST_FIRST, page)).execute(db)).rows
}

const selectPage = prepared((_: Kysely<DB>, page: PageOf) => entriesOn(countedPage(allWithin({}), NEWEST_FIRST, page)))

/** An empty page has the total in a row without an entry. */
const entriesOn = (countedPage: RawBuilder<unknown>) => sql<{ total: number } & (ListedEntry | { id: null })>`
  with ${countedPage}
  select counted.total, entry.id, entry.payload, entry.created_at, entry.ip_address
  from counted left join page on true left join ${sql.table('audit_log_entries')} entry on entry.id = page.id
  order by page.created_at desc, page.id`
