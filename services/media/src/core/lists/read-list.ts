// Lists of clips for their owners: pages by cursor, filters, searches and sorts (contract/media.md 2.15). The rule: no
// page reads more than a bounded number of rows. SQL: clip-lists.store.ts and search/.
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { invalidField, oneLine } from '../clips/clip-fields.ts'
import type { ApiToken } from '../tokens/tokens.store.ts'
import { viewsOf } from '../views/find-views.ts'
import type { ViewSummary } from '../views/views.store.ts'
import { type ClipFilter, type Direction, type ListedClip, listClips, listClipsById } from './clip-lists.store.ts'
import type { ListQuery } from './list-query.ts'
import { readFilter } from './read-filter.ts'
import type { Search } from './search/lists.store.ts'
import { listName, type Position, readPosition, type Sort, writePosition } from './search/position.ts'
import { splitWords } from './search/search.store.ts'
import { searchClips } from './search/search-clips.ts'

/** Longest search; each word costs a look into its list. */
const MAX_CHARACTERS = 200
const MAX_WORDS = 16

/** Clips of a page with their views, and the cursor of the next one. */
export interface ListPage {
  clips: ListedClip[]
  views: Map<string, ViewSummary>
  nextCursor: string | null
}

/** Reads a page of the clips that a token may list. Throws invalid_field and insufficient_scope. */
export function readOwnClips(
  deps: Pick<Deps, 'config' | 'now' | 'reads'>,
  caller: ApiToken,
  { limit, ...query }: ListQuery & { limit: number },
): Promise<ListPage> {
  const filter = readFilter(query, caller, deps.now())
  return deps.reads.current(async (db) => {
    const page = await readList(db, { ...query, limit, filter })
    const ids = page.clips.map(({ id }) => id)
    return { ...page, views: await viewsOf(deps, db, ids) }
  })
}

/** Reads a page of clips. Throws invalid_field for a bad search or cursor. */
async function readList(
  db: Kysely<DB>,
  { filter, limit, ...input }: ListQuery & { limit: number; filter: ClipFilter },
): Promise<Omit<ListPage, 'views'>> {
  const { q, sort = 'created', order = sort === 'title' ? 'asc' : 'desc', cursor, ...others } = input
  const list = listName({ ...others, q, sort, order })
  const after = cursor === undefined ? undefined : readPosition(cursor, list, sort)
  const words = q === undefined ? [] : await readWords(db, q)
  const page = { search: { ...filter, words }, sort, order, after, limit }
  const isIndexed = filter.visibility === undefined || (typeof filter.tokenId === 'string' && others.tag === undefined)
  const isWalk = q === undefined && sort === 'created' && isIndexed && filter.albumId === undefined
  const { clips, next } = await (isWalk ? listByCreation(db, page) : search(db, page))
  return { clips, nextCursor: next ? writePosition(next, list) : null }
}

async function readWords(db: Kysely<DB>, q: string): Promise<string[]> {
  const words = q.length > MAX_CHARACTERS ? [] : await splitWords(db, oneLine(q))
  if (words.length === 0 || words.length > MAX_WORDS) {
    throw invalidField('q', `must have 1 to ${MAX_WORDS} words in at most ${MAX_CHARACTERS} characters`)
  }
  return words
}

interface AskedPage {
  search: Search
  sort: Sort
  order: Direction
  after: Position | undefined
  limit: number
}

async function listByCreation(db: Kysely<DB>, { search, order, after, limit }: AskedPage) {
  const position = after && { createdAt: after.key as Date, id: after.id }
  const rows = await listClips(db, search, { after: position, order, limit: limit + 1 })
  const clips = rows.slice(0, limit)
  const last = clips.at(-1)
  return { clips, next: last && rows.length > limit ? { key: last.createdAt, id: last.id } : undefined }
}

async function search(db: Kysely<DB>, page: AskedPage) {
  const { ids, next } = await searchClips(db, page)
  return { clips: await listClipsById(db, ids, page.search.now), next }
}
