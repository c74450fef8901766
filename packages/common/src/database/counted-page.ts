// Pages of lists with their totals. One statement per page, and no count past MAX_COUNTED rows, where the planner's
// estimate serves: counting a million rows takes 135 ms. Tests: auth's list-users.test.ts and audit.test.ts.
import { type Kysely, type RawBuilder, sql } from 'kysely'

export interface PageOf {
  limit: number
  offset: number
}

export interface Total {
  rows: number
  isEstimated: boolean
}

/** Largest exact total. */
export const MAX_COUNTED = 10_000

/** Largest offset of a page of `countedPage`, whose index is walked up to it: 100 to 200 ms. */
export const MAX_OFFSET = 1_000_000

/**
 * The CTEs `counted` (one row, `total`) and `page` (the page's rows of `select`). For conditions that an index serves:
 * neither of the two scans reads more than it needs.
 */
export const countedPage = (select: RawBuilder<unknown>, order: RawBuilder<unknown>, { limit, offset }: PageOf) => sql`
  counted as (select count(*)::integer as total from (${select} limit ${sql.lit(MAX_COUNTED + 1)}) matching),
  page as (${select} order by ${order} limit ${limit} offset ${offset})`

/** The same for conditions that are looked for row by row, in one scan: for pages that begin at MAX_COUNTED at most. */
export const scannedPage = (select: RawBuilder<unknown>, order: RawBuilder<unknown>, { limit, offset }: PageOf) => sql`
  found as materialized (${select} order by ${order} limit ${sql.lit(MAX_COUNTED)} + ${limit}::integer),
  counted as (select count(*)::integer as total from found),
  page as (select * from found order by ${order} limit ${limit} offset ${offset})`

/**
 * The total of `select`, by the rows of its page, which name `counted.total`, and how many items they show; else by the
 * planner.
 */
export async function totalOf<DB>(
  db: Kysely<DB>,
  select: RawBuilder<unknown>,
  { limit, offset }: PageOf,
  pageRows: readonly { total: number }[],
  shown: number,
): Promise<Total> {
  const counted = pageRows[0]?.total ?? 0
  if (counted <= MAX_COUNTED) return { rows: counted, isEstimated: false }
  if (shown > 0 && shown < limit) return { rows: offset + shown, isEstimated: false }
  const { rows } = await sql<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>`
    explain (format json) ${select}`.execute(db)
  const planned = rows[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0
  return { rows: Math.max(counted, shown && offset + shown, planned), isEstimated: true }
}
