// The address of the library: its query holds search and filters, so that back, reload and bookmarks work.

import type { ListQuery } from '../../../core/lists/list-query.ts'
import { SORTS, type Sort } from '../../../core/lists/search/position.ts'

/** Parameters of GET /media that the page has fields for. */
export const FILTERS = ['q', 'tag', 'album', 'state', 'visibility', 'nsfw', 'from', 'to', 'sort', 'order'] as const
export type Filter = (typeof FILTERS)[number]

/** Given parameters, as text. */
export type Filters = Partial<Record<Filter, string>>

export const STATES = ['processing', 'ready', 'failed'] as const
export const VISIBILITIES = ['public', 'unlisted', 'private'] as const

/** Allowed values; other parameters are free text, which the list checks. */
const VALUES: Partial<Record<Filter, readonly string[]>> = {
  ...{ state: STATES, visibility: VISIBILITIES, nsfw: ['true', 'false'], sort: SORTS, order: ['asc', 'desc'] },
}

/** Reads filters; the form sends empty ones too, and an unknown value is none. */
export function readFilters(query: Readonly<Record<string, unknown>>): Filters {
  const given = FILTERS.flatMap((name) => {
    const value = query[name]
    const isKnown = typeof value === 'string' && value.trim() !== '' && (VALUES[name]?.includes(value) ?? true)
    return isKnown ? [[name, value.trim()] as const] : []
  })
  return Object.fromEntries(given)
}

/** Makes the query of GET /media. */
export const toQuery = (filters: Filters): ListQuery => filters as ListQuery & { sort?: Sort }

/** Path of the library with these filters, and from this position on. */
export function pathOf(filters: Filters, cursor?: string): string {
  const query = new URLSearchParams({ ...filters, ...(cursor !== undefined && { cursor }) }).toString()
  return query === '' ? '/library' : `/library?${query}`
}
