import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** Kinds of views: the page of a clip, its player in another page, and a file. */
export const VIEW_KINDS = ['page', 'embed', 'file'] as const
export type ViewKind = (typeof VIEW_KINDS)[number]

export type ViewCounts = Record<ViewKind, number>

export interface DayViews extends ViewCounts {
  clipId: string
  /** UTC day, as in 2026-11-28. */
  day: string
}

/**
 * Adds views in one statement; unknown and deleted clips are left out. It locks clips first and in order, as deletions
 * do. A row of the search that others hold keeps its old number until the next view. Returns how many were added.
 */
export async function addViews(db: Kysely<DB>, counted: readonly DayViews[]): Promise<number> {
  const column = (name: keyof DayViews) => counted.map((entry) => entry[name])
  const { rows } = await sql<{ added: number }>`
    with living as materialized (
      select id from ${sql.table('clips')} where id = any(${column('clipId')}::text[]) and deleted_at is null
      order by id for key share
    ), counted as (
      select clip_id, day, sum(page) as page, sum(embed) as embed, sum(file) as file
      from unnest(${column('clipId')}::text[], ${column('day')}::date[], ${column('page')}::bigint[],
        ${column('embed')}::bigint[], ${column('file')}::bigint[]) given (clip_id, day, page, embed, file)
      join living on living.id = given.clip_id
      group by clip_id, day
    ), days as (
      insert into ${sql.table('clip_views')} as stored (clip_id, day, page, embed, file)
      select clip_id, day, page, embed, file from counted order by clip_id, day
      on conflict (clip_id, day) do update set ${added}
    ), sums as (
      insert into ${sql.table('clip_view_sums')} as stored (clip_id, page, embed, file)
      select clip_id, sum(page), sum(embed), sum(file) from counted group by clip_id order by clip_id
      on conflict (clip_id) do update set ${added}
      returning clip_id, page + embed + file as views
    ), listed as (
      select search.clip_id, sums.views from sums join ${sql.table('clip_search')} search on search.clip_id = sums.clip_id
      for no key update of search skip locked
    ), sorted as (
      update ${sql.table('clip_search')} search set views = listed.views from listed
      where search.clip_id = listed.clip_id
    )
    select coalesce(sum(page + embed + file), 0)::bigint as added from counted`.execute(db)
  return rows[0]?.added ?? 0
}

const added = sql`page = stored.page + excluded.page, embed = stored.embed + excluded.embed,
  file = stored.file + excluded.file`

/** Views of a clip's owner: of the last 30 days, and of all. */
export interface ViewSummary {
  month: number
  total: number
}

const sumOf = (name: ViewKind): RawBuilder<number> => sql`sum(${sql.ref(name)})`

/** Views of these clips, of each. `since`: first day of the month. */
export async function findSummaries(
  db: Kysely<DB>,
  ids: readonly string[],
  since: string,
): Promise<Map<string, ViewSummary>> {
  const rows = await db
    .selectFrom('clip_view_sums')
    .where('clip_id', '=', sql<string>`any(${ids}::text[])`)
    .select(['clip_id', sql<number>`page + embed + file`.as('total')])
    .select((eb) =>
      eb
        .selectFrom('clip_views')
        .select(sql<number>`coalesce(${sumOf('page')} + ${sumOf('embed')} + ${sumOf('file')}, 0)::bigint`.as('month'))
        .whereRef('clip_views.clip_id', '=', 'clip_view_sums.clip_id')
        .where('day', '>=', since)
        .as('month'),
    )
    .execute()
  const found = new Map(rows.map(({ clip_id: id, total, month }) => [id, { month: month ?? 0, total }]))
  return new Map(ids.map((id) => [id, found.get(id) ?? { month: 0, total: 0 }]))
}

/** Days with views, oldest first, and the sum over all days. */
export async function findDays(
  db: Kysely<DB>,
  clipId: string,
  { from, to }: { from: string; to: string },
): Promise<{ days: (ViewCounts & { day: string })[]; total: ViewCounts }> {
  const [days, total] = await Promise.all([
    db
      .selectFrom('clip_views')
      .select(['page', 'embed', 'file', sql<string>`day::text`.as('day')])
      .where('clip_id', '=', clipId)
      .where('day', '>=', from)
      .where('day', '<=', to)
      .orderBy('clip_views.day')
      .execute(),
    db.selectFrom('clip_view_sums').select(VIEW_KINDS).where('clip_id', '=', clipId).executeTakeFirst(),
  ])
  return { days, total: total ?? { page: 0, embed: 0, file: 0 } }
}

/** Deletes days before `day`; the sums have them. */
export const deleteViewsBefore = (db: Kysely<DB>, day: string) =>
  deleteInBatches(db, 'clip_views', { column: 'day', before: day })
