import type { Kysely } from 'kysely'
import { invalidField, oneLine } from '../../core/clips/clip-fields.ts'
import type { DB } from '../../db/tables.ts'
import { readLimit } from '../../http/cursor.ts'
import { type ClipFilter, type Direction, type ListedClip, listClips, listClipsById } from './clip-lists.store.ts'
import type { Search } from './search/lists.store.ts'
import { listName, type Position, readPosition, type Sort, writePosition } from './search/position.ts'
import { splitWords } from './search/search.store.ts'
import { searchClips } from './search/search-clips.ts'

/** Longest search; each word costs a look into its list. */
const MAX_CHARACTERS = 200
const MAX_WORDS = 16

/** All parameters of GET /media as they were given, and the filter that they make. */
interface ListInput extends Partial<Record<'limit' | 'cursor' | 'q' | 'from' | 'to', string | undefined>> {
  sort?: Sort
  order?: Direction
  filter: ClipFilter
}

/** Reads a page of clips. Throws invalid_field for a bad search or cursor. */
export async function readList(
  db: Kysely<DB>,
  { filter, ...input }: ListInput,
): Promise<{ clips: ListedClip[]; nextCursor: string | null }> {
  const { q, sort = 'created', order = sort === 'title' ? 'asc' : 'desc', cursor, limit: _, ...others } = input
  const limit = readLimit(input)
  const list = listName({ ...others, q, sort, order })
  const after = cursor === undefined ? undefined : readPosition(cursor, list, sort)
  const words = q === undefined ? [] : await readWords(db, q)
  const page = { search: { ...filter, words }, sort, order, after, limit }
  const { clips, next } = await (q === undefined && sort === 'created' ? listByCreation(db, page) : search(db, page))
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
