import { inDocument } from '@services/common/http/route-schema'
import { type TSchema, Type } from 'typebox'
import { invalidField } from '../core/clips/clip-fields.ts'
import { orNull } from './shapes.ts'

/** Position in a list, newest first: the last item before it. */
export interface Position {
  createdAt: Date
  id: string
}

const USUAL_PER_PAGE = 50

/** Query members of every list. Numbers of a query are text. */
export const pageQuery = {
  limit: Type.Optional(
    Type.String({
      pattern: '^([1-9][0-9]?|100)$',
      description: 'Entries per page.',
      ...inDocument({ type: 'integer', minimum: 1, maximum: 100, default: USUAL_PER_PAGE, pattern: undefined }),
    }),
  ),
  cursor: Type.Optional(Type.String({ description: '`next_cursor` of the previous page.' })),
}

export const pageOf = <Item extends TSchema>(item: Item) =>
  Type.Object({ items: Type.Array(item), next_cursor: orNull(Type.String()) })

/** Reads `limit` and `cursor`; `isId` recognizes ids of the list's items. Throws invalid_field. */
export function readPage(
  { limit, cursor }: { limit?: string | undefined; cursor?: string | undefined },
  isId: (text: string) => boolean,
): { after: Position | undefined; limit: number } {
  return { after: cursor === undefined ? undefined : toPosition(readCursor(cursor, isId)), limit: readLimit({ limit }) }
}

export const readLimit = ({ limit }: { limit?: string | undefined }): number =>
  limit === undefined ? USUAL_PER_PAGE : Number(limit)

/** Takes `limit + 1` rows; returns the page, and the cursor of the next one if there is one. */
export function cutPage<Item extends Position>(
  rows: Item[],
  limit: number,
): { items: Item[]; nextCursor: string | null } {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  return { items, nextCursor: last && rows.length > limit ? writeCursor(last.createdAt.getTime(), last.id) : null }
}

/** Value of the Link header (RFC 8288). */
export function linkToNext(baseUrl: string, path: string, query: Record<string, string | undefined>): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return `<${baseUrl}${path}?${new URLSearchParams(given)}>; rel="next"`
}

/** A position by a whole number and an id. */
export const writeCursor = (key: number, id: string): string => Buffer.from(`${key}.${id}`).toString('base64url')

/** Throws invalid_field. */
export function readCursor(cursor: string, isId: (text: string) => boolean): { key: number; id: string } {
  const [, key, id = ''] = /^(\d{1,15})\.(.+)$/.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? []
  if (key === undefined || !isId(id)) throw notACursor()
  return { key: Number(key), id }
}

function toPosition({ key, id }: { key: number; id: string }): Position {
  const createdAt = new Date(key)
  if (Number.isNaN(createdAt.getTime())) throw notACursor()
  return { createdAt, id }
}

const notACursor = () => invalidField('cursor', 'must be the next_cursor of a previous page')
