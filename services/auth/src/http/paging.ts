import { apiError } from '../errors.ts'

export interface Page {
  number: number
  limit: number
  offset: number
}

const DEFAULT_PER_PAGE = 50

/** `page` and `per_page` of a list (contract/auth-core.md 11.15); what is no number from 1 on is refused. */
export function readPage(query: { page?: string; per_page?: string }, { maxPerPage }: { maxPerPage: number }): Page {
  const number = readNumber('page', query.page, 1, 1_000_000)
  const limit = readNumber('per_page', query.per_page, DEFAULT_PER_PAGE, maxPerPage)
  return { number, limit, offset: (number - 1) * limit }
}

function readNumber(name: string, text: string | undefined, fallback: number, most: number): number {
  if (text === undefined || text === '') return fallback
  const number = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= most) return number
  throw apiError('validation_failed', { message: `${name} must be a number from 1 to ${most}` })
}

/** X-Total-Count and Link: next (not on the last page) and last, path-relative, keys in alphabetical order. */
export function pageHeaders(requestUrl: string, { number, limit }: Page, total: number): Record<string, string> {
  const last = Math.ceil(total / limit)
  const next = number < last ? [linkTo(requestUrl, number + 1, 'next')] : []
  return { 'X-Total-Count': String(total), Link: [...next, linkTo(requestUrl, last, 'last')].join(', ') }
}

function linkTo(requestUrl: string, page: number, relation: string): string {
  const { pathname, searchParams } = new URL(requestUrl, 'http://path.only')
  searchParams.set('page', String(page))
  searchParams.sort()
  return `<${pathname}?${searchParams}>; rel="${relation}"`
}
