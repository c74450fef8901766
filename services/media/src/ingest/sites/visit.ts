import { ApiError } from '@services/common/errors'
import type { Config } from '../../config.ts'
import { apiError } from '../../errors.ts'
import type { Remote, RemoteAnswer } from '../remote/fetch-remote.ts'
import { readBody } from '../remote/read-body.ts'
import { decodeText } from './decode-text.ts'
import { changed } from './failures.ts'
import { parseJson } from './json.ts'
import type { Page } from './page.ts'

type SiteKeys = Config['sites']['keys']

export interface Visit {
  keys: SiteKeys
  /** Throws source_fetch_failed if no answer comes, source_forbidden for a host that is not the site's. */
  get: (url: string, options?: VisitRequest) => Promise<Answer>
}

interface VisitRequest {
  cookie?: string
  authorization?: string
  form?: Record<string, string>
  /** A redirect to such an address is not followed: the address is the answer. */
  until?: (url: URL) => boolean
}

/** `next` is the target of a redirect that was not followed: outside the site, or `until`. */
export interface Answer extends Pick<RemoteAnswer, 'url' | 'status' | 'next'> {
  cookies: string[]
  text: string
  json: () => unknown
  page: () => Promise<Page>
}

/** contract/media.md 3.3. */
const MAX_REQUESTS = 4
const MAX_PAGE_BYTES = 2 * 1024 * 1024
const MAX_JSON_BYTES = 4 * 1024 * 1024
const BUDGET_MS = 10_000

interface VisitOptions {
  site: string
  keys: SiteKeys
  mayVisit: (url: URL) => boolean
  signal: AbortSignal
  /** Requests that led here; they count too. */
  requestsMade?: number
}

export function startVisit(remote: Pick<Remote, 'fetch'>, options: VisitOptions): Visit {
  const { site, keys, mayVisit, signal, requestsMade = 0 } = options
  const endsAt = performance.now() + BUDGET_MS
  let left = MAX_REQUESTS - requestsMade
  return {
    keys,
    get: async (url, { form, until = () => false, ...own } = {}) => {
      const parsed = URL.parse(url)
      if (!parsed || !mayVisit(parsed))
        throw apiError('source_forbidden', { cause: `${site} asks for ${parsed?.host}` })
      if (left-- <= 0) throw changed(site)
      const totalMs = Math.max(1, endsAt - performance.now())
      const ownHeaders = { accept: 'text/html,application/json;q=0.9,*/*;q=0.5', ...own }
      const goesOn = (next: URL) => mayVisit(next) && !until(next)
      const request = { ownHeaders, mayVisit: goesOn, signal, totalMs, form }
      return remote.fetch(parsed.href, request, readAnswer).catch(addSite(site))
    },
  }
}

async function readAnswer({ url, status, next, headers, chunks }: RemoteAnswer): Promise<Answer> {
  const { 'content-type': type = '' } = headers
  // undici: a text if there is one.
  const cookies = [headers['set-cookie'] ?? []].flat()
  const maxBytes = /html/.test(type) ? MAX_PAGE_BYTES : MAX_JSON_BYTES
  const text = decodeText(next ? Buffer.alloc(0) : await readBody({ headers, chunks }, maxBytes), type)
  const page = async () => (await import('./read-page.ts')).readPage(text, url)
  return { url, status, next, cookies, text, json: () => parseJson(text), page }
}

/** Adds `details.site`, which separates a silent site from a missing file. */
const addSite = (site: string) => (error: unknown) => {
  if (!(error instanceof ApiError) || error.code !== 'source_fetch_failed') throw error
  throw apiError('source_fetch_failed', { details: { ...error.details, site }, cause: error.cause })
}
