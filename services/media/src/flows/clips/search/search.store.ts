import { PLANNED_EACH_TIME } from '@services/common/database-connection'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { DB } from '../../../db/tables.ts'
import type { ClipFilter, Direction } from '../clip-lists.store.ts'
import type { Position, Sort, SortKey } from './position.ts'

/** Clips of an owner by their words, and by the filters of all lists. */
export interface Search extends ClipFilter {
  /** Words that `splitWords` returned; the last is the beginning of a word. Empty: any clip. */
  words: readonly string[]
}

/** Clips of an owner, newest first or oldest first: a walk along an index. */
export type ClipList =
  | { of: 'all' }
  | { of: 'tag'; tagKey: string }
  | { of: 'words'; words: readonly string[] }
  /** Read whole and sorted. */
  | { of: 'prefix'; prefix: string }

/** Part of a list; `most` bounds what is read. */
interface Part extends Pick<Search, 'tokenId' | 'from' | 'to'> {
  order: Direction
  after: Position | undefined
  most: number
}

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

const SORT_COLUMNS = { title: 'title_key', bytes: 'bytes', duration: 'duration_ms' } as const

export type OtherSort = Exclude<Sort, 'created'>

type Fragment = RawBuilder<unknown>

const plannedEachTime = sql.raw(PLANNED_EACH_TIME)
const clipSearch = sql.table('clip_search')
const clipWords = sql.table('clip_words')

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
    order by ${ownerFirst(search.tokenId, order)} ${key} ${to(order)}, ${id} ${to(order)} limit ${most})`
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
    order by ${key} ${to(order)}, ${id} ${to(order)} limit ${limit}`.execute(db)
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
      order by ${key} ${to(order)}, walked.clip_id ${to(order)} limit ${limit}
    )
    select id, key, false as "isEnd" from found
    union all (select walked.clip_id, ${key}, true from ${walked} walked
      where (select count(*) from found) < ${limit} offset ${most - 1} limit 1)
    order by 3, 2 ${to(order)}, 1 ${to(order)}`.execute(db)
  return rows
}

function selectList(list: ClipList, part: Part): Fragment {
  switch (list.of) {
    case 'all':
      return selectPart('clips', sql`deleted_at is null`, part)
    case 'tag':
      return selectPart('clip_tags', sql`tag_key = ${list.tagKey}`, part)
    case 'words':
      return merge(
        list.words.map((word) => selectPart('clip_words', sql`word = ${word}`, part)),
        part,
      )
    case 'prefix': {
      const whole = sql`(${selectPrefix(part.tokenId, list.prefix)} limit ${part.most}) whole`
      return merge([sql`select * from ${whole} where ${isInPart(sql.ref('clip_id'), part)}`], part)
    }
  }
}

function selectPart(table: 'clips' | 'clip_tags' | 'clip_words', condition: Fragment, part: Part): Fragment {
  const id = sql.ref(table === 'clips' ? 'id' : 'clip_id')
  return sql`(select ${ownerOf(part)} created_at, ${id} as clip_id from ${sql.table(table)}
    where ${isOwned(part.tokenId)} and ${condition} and ${isInPart(id, part)} ${inOrder(part)})`
}

/** Merges lists in their order. A clip may have several words that begin alike. */
const merge = (lists: readonly Fragment[], part: Part) => sql`(
  select distinct on (${ownerOf(part)} created_at, clip_id) created_at, clip_id
  from (${sql.join(lists, sql` union all `)}) listed ${inOrder(part)})`

const ownerOf = ({ tokenId }: Part) => (tokenId === null ? sql`token_id,` : sql``)

const inOrder = ({ tokenId, order, most }: Part) => sql`
  order by ${ownerFirst(tokenId, order === 'desc' ? 'asc' : 'desc')} created_at ${to(order)}, clip_id ${to(order)} limit ${most}`

const selectPrefix = (tokenId: Search['tokenId'], prefix: string) => sql`select * from ${clipWords}
  where ${isOwned(tokenId)} and word >= ${prefix} and word < ${pastPrefix(prefix)}
  order by ${ownerFirst(tokenId, 'asc')} word`

/** The first text behind all that begin with the prefix, in the order of code points. */
const pastPrefix = (prefix: string) => `${prefix}\u{10ffff}`

/** Not a join: a plan could read the whole table for it. */
const withSearch = (id: Fragment) =>
  sql`cross join lateral (select * from ${clipSearch} of_clip where of_clip.clip_id = ${id} offset 0) search`

/** Conditions on a row of `clip_search`; none needs more than a few rows of other tables. */
function matches({ words, tagKey, state, nsfw, from, to }: Search, alias: string): Fragment {
  const of = (column: string) => sql.ref(`${alias}.${column}`)
  return all([
    words.length > 0 && sql`${of('words')} @@ ${toTsquery(words)}::tsquery`,
    nsfw !== undefined && sql`${of('nsfw')} = ${nsfw}`,
    from && sql`${of('created_at')} >= ${from}`,
    to && sql`${of('created_at')} < ${to}`,
    tagKey !== undefined &&
      sql`(select true from ${sql.table('clip_tags')} tagged where tagged.clip_id = ${of('clip_id')} and tag_key = ${tagKey})`,
    state !== undefined &&
      sql`(select source.state = ${state} from ${sql.table('clips')} clip
        join ${sql.table('sources')} source on source.id = clip.source_id where clip.id = ${of('clip_id')})`,
  ])
}

/** A word has neither quotes nor backslashes. */
const toTsquery = (words: readonly string[]) => `${words.map((word) => `'${word}'`).join(' & ')}:*`

const isInPart = (id: Fragment, { order, after, from, to }: Part) =>
  all([
    isPast(sql.ref('created_at'), id, order, after),
    from && sql`created_at >= ${from}`,
    to && sql`created_at < ${to}`,
  ])

function isPast(key: Fragment, id: Fragment, order: Direction, after: Position | undefined): Fragment {
  if (!after) return sql`true`
  return sql`(${key}, ${id}) ${sql.raw(order === 'desc' ? '<' : '>')} (${after.key}, ${after.id})`
}

function isOwned(tokenId: Search['tokenId']): Fragment {
  if (tokenId === undefined) return sql`true`
  return tokenId === null ? sql`token_id is null` : sql`token_id = ${tokenId}`
}

/** Makes the planner see that an index that begins with the owner has the order, which it does of `=` but not of `is null`. */
const ownerFirst = (tokenId: Search['tokenId'], order: Direction) =>
  tokenId === null ? sql`token_id ${to(order)}, ` : sql``

const to = (order: Direction) => sql.raw(order)

const all = (conditions: readonly (Fragment | false | undefined)[]) => {
  const given = conditions.filter((condition) => condition !== false && condition !== undefined)
  return given.length > 0 ? sql.join(given, sql` and `) : sql`true`
}
