import { PLANNED_EACH_TIME } from '@services/common/database/connection'
import { type Kysely, sql } from 'kysely'
import type { DB } from '../../../db/tables.ts'
import {
  all,
  type ClipList,
  clipWords,
  direction,
  type Fragment,
  isOwned,
  isPast,
  ownerFirst,
  type Part,
  pastPrefix,
  type Search,
  selectList,
  selectPrefix,
} from './lists.store.ts'
import type { Sort, SortKey } from './position.ts'

interface Page extends Omit<Part, keyof Search> {
  search: Search
  limit: number
}

/** A match; or the clip at which a walk ended that did not find enough of them. */
export interface Found {
  id: string
  key: SortKey
  isEnd: boolean
}

const SORT_COLUMNS = { title: 'title_key', bytes: 'bytes', duration: 'duration_ms', views: 'views' } as const

export type OtherSort = Exclude<Sort, 'created'>

const plannedEachTime = sql.raw(PLANNED_EACH_TIME)
const clipSearch = sql.table('clip_search')

/** Words of a text as the triggers list them. */
export async function splitWords(db: Kysely<DB>, text: string): Promise<string[]> {
  const { rows } = await sql<{ words: string[] }>`select ${sql.table('search_words')}(${text}) as words`.execute(db)
  return rows[0]?.words ?? []
}

/** Counts words of clips that begin with `prefix`, up to `most`. */
export async function countPrefix(
  db: Kysely<DB>,
  tokenId: Search['tokenId'],
  { prefix, most }: { prefix: string; most: number },
): Promise<number> {
  const { rows } = await sql<{ count: number }>`${plannedEachTime}
    select count(*)::integer as count from (${selectPrefix(tokenId, prefix)} limit ${most}) listed`.execute(db)
  return rows[0]?.count ?? 0
}

/** Different words that begin with `prefix`, up to `most`; each costs one descent of the index. */
export async function listCompletions(
  db: Kysely<DB>,
  tokenId: Search['tokenId'],
  { prefix, most }: { prefix: string; most: number },
): Promise<string[]> {
  const next = (from: Fragment) => sql`(select word from ${clipWords} next
    where ${isOwned(tokenId)} and next.word ${from} and next.word < ${pastPrefix(prefix)}
    order by ${ownerFirst(tokenId, 'asc')} next.word limit 1)`
  const { rows } = await sql<{ word: string }>`${plannedEachTime}
    with recursive known (word) as (
      select ${next(sql`>= ${prefix}`)}
      union all select ${next(sql`> known.word`)} from known where known.word is not null
    ) select word from known where word is not null limit ${most}`.execute(db)
  return rows.map(({ word }) => word)
}

/** Length of a part of a list, and the time of its last clip. */
export async function measureList(
  db: Kysely<DB>,
  list: ClipList,
  part: Part,
): Promise<{ count: number; reach: Date | null }> {
  const last = sql.raw(part.order === 'desc' ? 'min' : 'max')
  const { rows } = await sql<{ count: number; reach: Date | null }>`${plannedEachTime}
    select count(*)::integer as count, ${last}(created_at) as reach from ${selectList(list, part)} listed`.execute(db)
  return rows[0] as { count: number; reach: Date | null }
}

/** Finds the first `limit` matches in a part of a list. */
export async function walkList(db: Kysely<DB>, list: ClipList, page: Page): Promise<Found[]> {
  const walked = selectList(list, { ...page.search, ...page })
  return walk(db, page, {
    walked,
    key: sql.ref('walked.created_at'),
    from: sql`${walked} walked ${withSearch(sql.ref('walked.clip_id'))}`,
  })
}

/** The same along the index of a sort, whose clips have an order of their own. */
export async function walkSort(db: Kysely<DB>, sort: OtherSort, page: Page): Promise<Found[]> {
  const { search, order, after, most } = page
  const [key, id] = [sql.ref(SORT_COLUMNS[sort]), sql.ref('clip_id')]
  const walked = sql`(select * from ${clipSearch} where ${isOwned(search.tokenId)} and ${isPast(key, id, order, after)}
    order by ${ownerFirst(search.tokenId, order)} ${key} ${direction(order)}, ${id} ${direction(order)} limit ${most})`
  const walkedKey = sql.ref(`walked.${SORT_COLUMNS[sort]}`)
  return walk(db, page, { walked, key: walkedKey, from: sql`${walked} walked`, search: 'walked' })
}

/** Sorts the matches of a list that is no longer than `most`. */
export async function sortList(db: Kysely<DB>, list: ClipList, sort: OtherSort, page: Page): Promise<Found[]> {
  const { search, order, after, limit, most } = page
  const listed = selectList(list, { ...search, order: 'desc', after: undefined, most })
  const [key, id] = [sql.ref(`search.${SORT_COLUMNS[sort]}`), sql.ref('listed.clip_id')]
  const { rows } = await sql<Found>`${plannedEachTime}
    select ${id} as id, ${key} as key, false as "isEnd" from ${listed} listed ${withSearch(id)}
    where ${matches(search, 'search')} and ${isPast(key, id, order, after)}
    order by ${key} ${direction(order)}, ${id} ${direction(order)} limit ${limit}`.execute(db)
  return rows
}

/** One statement: the end must be that of the same walk. */
async function walk(
  db: Kysely<DB>,
  { search, order, limit, most }: Page,
  { walked, key, from, search: alias = 'search' }: { walked: Fragment; key: Fragment; from: Fragment; search?: string },
): Promise<Found[]> {
  const { rows } = await sql<Found>`${plannedEachTime}
    with found as materialized (
      select walked.clip_id as id, ${key} as key from ${from} where ${matches(search, alias)}
      order by ${key} ${direction(order)}, walked.clip_id ${direction(order)} limit ${limit}
    )
    select id, key, false as "isEnd" from found
    union all (select walked.clip_id, ${key}, true from ${walked} walked
      where (select count(*) from found) < ${limit} offset ${most - 1} limit 1)
    order by 3, 2 ${direction(order)}, 1 ${direction(order)}`.execute(db)
  return rows
}

/** Not a join: a plan could read the whole table for it. */
const withSearch = (id: Fragment) =>
  sql`cross join lateral (select * from ${clipSearch} of_clip where of_clip.clip_id = ${id} offset 0) search`

/** Conditions on a row of `clip_search`; none needs more than a few rows of other tables. */
function matches({ words, tagKey, state, nsfw, visibility, from, to }: Search, alias: string): Fragment {
  const of = (column: string) => sql.ref(`${alias}.${column}`)
  return all([
    words.length > 0 && sql`${of('words')} @@ ${toTsquery(words)}::tsquery`,
    nsfw !== undefined && sql`${of('nsfw')} = ${nsfw}`,
    from && sql`${of('created_at')} >= ${from}`,
    to && sql`${of('created_at')} < ${to}`,
    tagKey !== undefined &&
      sql`(select true from ${sql.table('clip_tags')} tagged where tagged.clip_id = ${of('clip_id')} and tag_key = ${tagKey})`,
    visibility !== undefined &&
      sql`(select clip.visibility = ${visibility} from ${sql.table('clips')} clip where clip.id = ${of('clip_id')})`,
    state !== undefined &&
      sql`(select source.state = ${state} from ${sql.table('clips')} clip
        join ${sql.table('sources')} source on source.id = clip.source_id where clip.id = ${of('clip_id')})`,
  ])
}

/** A word has neither quotes nor backslashes. */
const toTsquery = (words: readonly string[]) => `${words.map((word) => `'${word}'`).join(' & ')}:*`
