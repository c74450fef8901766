import { type RawBuilder, sql } from 'kysely'
import type { Visibility } from '../../../db/tables.ts'
import { type ClipFilter, type Direction, hasVisibility } from '../clip-lists.store.ts'
import type { Position } from './position.ts'

export type Fragment = RawBuilder<unknown>

/** Clips of an owner by their words, and by the filters of all lists. */
export interface Search extends ClipFilter {
  /** Words that `splitWords` returned; the last is the beginning of a word. Empty: any clip. */
  words: readonly string[]
}

/** Clips of an owner, newest first or oldest first: a walk along an index. */
export type ClipList =
  | { of: 'all' }
  | { of: 'tag'; tagKey: string }
  /** Clips of a token, or of none. */
  | { of: 'visibility'; visibility: Visibility }
  /** 500 clips at most. */
  | { of: 'album'; albumId: string }
  | { of: 'words'; words: readonly string[] }
  /** Read whole and sorted. */
  | { of: 'prefix'; prefix: string }

/** Part of a list; `most` bounds what is read. */
export interface Part extends Pick<Search, 'tokenId' | 'from' | 'to'> {
  order: Direction
  after: Position | undefined
  most: number
}

export const clipWords = sql.table('clip_words')

export function selectList(list: ClipList, part: Part): Fragment {
  switch (list.of) {
    case 'all':
      return selectPart('clips', sql`deleted_at is null`, part)
    case 'tag':
      return selectPart('clip_tags', sql`tag_key = ${list.tagKey}`, part)
    case 'visibility':
      return selectPart('clips', hasVisibility(list.visibility), part)
    case 'album': {
      const ofAlbum = sql`select clip_id from ${sql.table('album_items')} where album_id = ${list.albumId}`
      return selectPart('clips', sql`deleted_at is null and id in (${ofAlbum})`, part)
    }
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
  order by ${ownerFirst(tokenId, order === 'desc' ? 'asc' : 'desc')} created_at ${direction(order)}, clip_id ${direction(order)} limit ${most}`

export const selectPrefix = (tokenId: Search['tokenId'], prefix: string) => sql`select * from ${clipWords}
  where ${isOwned(tokenId)} and word >= ${prefix} and word < ${pastPrefix(prefix)}
  order by ${ownerFirst(tokenId, 'asc')} word`

/** The first text behind all that begin with the prefix, in the order of code points. */
export const pastPrefix = (prefix: string) => `${prefix}\u{10ffff}`

const isInPart = (id: Fragment, { order, after, from, to }: Part) =>
  all([
    isPast(sql.ref('created_at'), id, order, after),
    from && sql`created_at >= ${from}`,
    to && sql`created_at < ${to}`,
  ])

export function isPast(key: Fragment, id: Fragment, order: Direction, after: Position | undefined): Fragment {
  if (!after) return sql`true`
  return sql`(${key}, ${id}) ${sql.raw(order === 'desc' ? '<' : '>')} (${after.key}, ${after.id})`
}

export function isOwned(tokenId: Search['tokenId']): Fragment {
  if (tokenId === undefined) return sql`true`
  return tokenId === null ? sql`token_id is null` : sql`token_id = ${tokenId}`
}

/** Lets the planner use the index on (owner, …) for ordering; it does for `=`, not for `is null`. */
export const ownerFirst = (tokenId: Search['tokenId'], order: Direction) =>
  tokenId === null ? sql`token_id ${direction(order)}, ` : sql``

export const direction = (order: Direction) => sql.raw(order)

export const all = (conditions: readonly (Fragment | false | undefined)[]) => {
  const given = conditions.filter((condition) => condition !== false && condition !== undefined)
  return given.length > 0 ? sql.join(given, sql` and `) : sql`true`
}
