import { MAX_COUNTED, MAX_OFFSET, type PageOf, type Total } from '@services/common/database/counted-page'
import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { apiError } from '../../errors.ts'

const DEFAULT_PER_PAGE = 50
export const MAX_PER_PAGE = 1_000

const pageQuery = (perPage: number) => ({
  page: Type.Optional(
    Type.String({
      description: 'Number of the page, from 1; 0 is taken as 1.',
      ...inDocument({ type: 'integer', minimum: 0, default: 1 }),
    }),
  ),
  per_page: Type.Optional(
    Type.String({
      description: 'Entries per page; more than 1000 are taken as 1000.',
      ...inDocument({ type: 'integer', minimum: 1, default: perPage }),
    }),
  ),
})

/** Query of every list with pages; empty values count as absent, because clients send `page=&per_page=`. */
export const PageQuery = pageQuery(DEFAULT_PER_PAGE)

/** Query of a list that clients expect whole: its default page is the largest one. */
export const LargePageQuery = pageQuery(MAX_PER_PAGE)

export type Page = PageOf & { number: number; maxOffset: number }

interface PageRules {
  /** Whether the list is a search, whose pages reach less far. */
  isSearch?: boolean
  /** Entries per page where the request names no number. */
  perPage?: number
}

/** Throws validation_failed unless both are whole numbers from 1; page 0 is page 1. */
export function parsePage(
  query: { page?: string | undefined; per_page?: string | undefined },
  { isSearch = false, perPage = DEFAULT_PER_PAGE }: PageRules = {},
): Page {
  const number = query.page === '0' ? 1 : (parseCount('page', query.page) ?? 1)
  const limit = Math.min(parseCount('per_page', query.per_page) ?? perPage, MAX_PER_PAGE)
  return { number, limit, offset: (number - 1) * limit, maxOffset: isSearch ? MAX_COUNTED : MAX_OFFSET }
}

/**
 * Lists a page by `list`, which shows rows up to `maxOffset` in bounded time. Throws validation_failed for a page past
 * that, if the list goes on there; else the page is empty.
 */
export async function reachedPage<Row>(
  page: Page,
  list: (page: PageOf) => Promise<{ rows: Row[]; total: Total }>,
): Promise<{ rows: Row[]; total: Total }> {
  const { offset, maxOffset } = page
  const listed = await list(offset > maxOffset ? { limit: 1, offset: maxOffset } : page)
  if (offset <= maxOffset || listed.rows.length === 0) return listed
  throw apiError('validation_failed', { message: `page must begin within the first ${maxOffset} entries` })
}

/** Size of a list without pages. */
export const parseLimit = (limit: string | undefined): number =>
  Math.min(parseCount('limit', limit) ?? DEFAULT_PER_PAGE, MAX_PER_PAGE)

/** Throws validation_failed unless a given number is a whole one from 1. */
export function parseCount(field: string, text: string | undefined): number | undefined {
  if (!text) return undefined
  if (/^\d{1,9}$/.test(text) && Number(text) > 0) return Number(text)
  throw apiError('validation_failed', { message: `${field} must be a whole number of at least 1` })
}

export const PAGE_HEADERS = ['X-Total-Count', 'X-Total-Count-Estimated', 'Link']

/**
 * Builds the headers of a page. Link has the next page, if any, and the last that can be listed, which is 0 for an
 * empty list.
 */
export function pageHeaders(url: string, page: Page, total: Total) {
  const last = Math.min(Math.ceil(total.rows / page.limit), Math.floor(page.maxOffset / page.limit) + 1)
  const next = page.number < last ? [linkTo(url, { page: String(page.number + 1) }, 'next')] : []
  return {
    'x-total-count': String(total.rows),
    ...(total.isEstimated ? { 'x-total-count-estimated': 'true' } : {}),
    link: [...next, linkTo(url, { page: String(last) }, 'last')].join(', '),
  }
}

/** Links to the same list with other parameters, sorted by name: clients compare these texts. */
export function linkTo(url: string, changes: Record<string, string>, rel: string): string {
  const [path, query = ''] = url.split(/\?(.*)/s, 2)
  const parameters = new URLSearchParams(query)
  for (const [name, value] of Object.entries(changes)) parameters.set(name, value)
  parameters.sort()
  return `<${path}?${parameters}>; rel="${rel}"`
}
