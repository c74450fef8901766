// Search and sort (contract/media.md 2.15a). No page reads more than a bounded number of rows, whatever is input among
// however many clips. A list that is short enough is read whole. A page of a long one walks along an index, and ends
// after a number of clips even with fewer hits than requested. Tests: test/search.test.ts, test/search-at-size.test.ts.
import type { Kysely } from 'kysely'
import type { DB } from '../../../db/tables.ts'
import type { Direction } from '../clip-lists.store.ts'
import type { ClipList, Search } from './lists.store.ts'
import type { Position, Sort } from './position.ts'
import { countPrefix, type Found, listCompletions, measureList, sortList, walkList, walkSort } from './search.store.ts'

/** Clips of a list that is read whole. */
const SHORT = 4_000
/**
 * Clips that a page reads at most along a list and along a sort. Along a list each costs a descent of an index (4 to 7
 * us).
 */
const LISTED = 4_000
const SORTED = 10_000
/** Words with a common beginning whose lists are merged. */
const MERGED = 50

interface SearchInput {
  search: Search
  sort: Sort
  order: Direction
  after: Position | undefined
  limit: number
}

/** Ids of a page. It may have fewer than `limit` and yet a next one. */
export async function searchClips(
  db: Kysely<DB>,
  input: SearchInput,
): Promise<{ ids: string[]; next: Position | undefined }> {
  const { limit } = input
  const found = await findClips(db, { ...input, limit: limit + 1 })
  const matches = found.filter(({ isEnd }) => !isEnd)
  const page = matches.slice(0, limit)
  const end = found.find(({ isEnd }) => isEnd)
  return { ids: page.map(({ id }) => id), next: matches.length > limit ? page.at(-1) : end }
}

async function findClips(db: Kysely<DB>, { sort, ...input }: SearchInput): Promise<Found[]> {
  const page = { ...input, most: LISTED }
  const wide = { ...input, most: SORTED }
  if (sort !== 'created' && !isNarrowed(input.search)) return walkSort(db, sort, wide)
  const { list, isShort } = await chooseList(
    db,
    sort === 'created' ? input : { ...input, order: 'desc', after: undefined },
  )
  if (sort === 'created') return walkList(db, list, page)
  return isShort ? sortList(db, list, sort, page) : walkSort(db, sort, wide)
}

const isNarrowed = ({ tokenId, now, ...filters }: Search) =>
  Object.values(filters).some((filter) => (Array.isArray(filter) ? filter.length > 0 : filter !== undefined))

/** Chooses a short list that has all matches, or else the one with the fewest clips in the direction of the walk. */
async function chooseList(
  db: Kysely<DB>,
  { search, order, after }: Pick<SearchInput, 'search' | 'order' | 'after'>,
): Promise<{ list: ClipList; isShort: boolean }> {
  const sign = order === 'desc' ? -1 : 1
  let sparsest: { list: ClipList; reach: number } | undefined
  for (const list of await candidates(db, search)) {
    if (list.of === 'prefix') return { list, isShort: true }
    const { count, reach } = await measureList(db, list, { ...search, order, after, most: SHORT + 1 })
    if (count <= SHORT || !reach) return { list, isShort: true }
    if (!sparsest || sign * (reach.getTime() - sparsest.reach) > 0) sparsest = { list, reach: reach.getTime() }
  }
  return { list: sparsest?.list ?? { of: 'all' }, isShort: false }
}

/** Lists that have all matches, those first that are likely to be short. */
async function candidates(
  db: Kysely<DB>,
  { tokenId, words, tagKey, albumId, visibility }: Search,
): Promise<ClipList[]> {
  // The one list that keeps to the album, and always short.
  if (albumId !== undefined) return [{ of: 'album', albumId }]
  const lists: ClipList[] = words
    .slice(0, -1)
    .toSorted((one, other) => other.length - one.length)
    .map((word) => ({ of: 'words', words: [word] }))
  if (tagKey !== undefined) lists.push({ of: 'tag', tagKey })
  if (visibility !== undefined && tokenId !== undefined) lists.push({ of: 'visibility', visibility })
  const prefix = words.at(-1)
  if (prefix !== undefined) {
    if ((await countPrefix(db, tokenId, { prefix, most: SHORT + 1 })) <= SHORT) return [{ of: 'prefix', prefix }]
    const completions = await listCompletions(db, tokenId, { prefix, most: MERGED + 1 })
    if (completions.length > 0 && completions.length <= MERGED) lists.push({ of: 'words', words: completions })
  }
  return lists.length > 0 ? lists : [{ of: 'all' }]
}
