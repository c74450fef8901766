// Fetches the file behind an address: a direct file with one request, a page by its site's adapter or generic
// discovery. Whatever a page promises, only the bytes decide.
import { ApiError } from '@services/common/errors'
import { type Edit, longestSource } from '../../core/edits/edit.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import type { FetchedFile } from '../../ingest/remote/save-body.ts'
import { noClip, switchedOff } from '../../ingest/sites/failures.ts'
import { type About, type Found, isHostOf, type MediaSource } from '../../ingest/sites/site.ts'
import { siteOf } from '../../ingest/sites/sites.ts'
import { startVisit } from '../../ingest/sites/visit.ts'
import { refuseDeclaredDuration } from '../../make/probe/source-limits.ts'
import { openSource } from './open-source.ts'

export interface Destination {
  /** Path of a file that does not exist yet. */
  path: string
  maxBytes: number
  signal: AbortSignal
  /** Deadline on the clock of `performance.now()`. */
  endsAt: number
  /** Key of the probe and yt-dlp slots. */
  key: string
  /** A chosen part permits a longer source. */
  edit?: Edit | undefined
}

export interface ReceivedSource {
  file: FetchedFile
  /** Seconds of the source before the file, of which only the edit's part was fetched. */
  missingSeconds?: number
  /** Fields from the page; undefined for a direct file. */
  about?: About
}

/** Pages followed from the first one. */
const DEEPEST_PAGE = 1
/** Most sources of a page that are attempted. */
const MAX_ATTEMPTS = 6

type Needs = Pick<Deps, 'remote' | 'config' | 'assembleManifest' | 'extractPage'>

/** Throws site_gone, site_login_required, unsupported_site_content and the errors of `openSource`. */
export async function receiveSource(deps: Needs, url: string, to: Destination): Promise<ReceivedSource> {
  const { extractPage } = deps
  if (!extractPage) return receive(deps, url, to, 0)
  let isAsked = false
  const extractAndNote: typeof extractPage = (...args) => {
    isAsked = true
    return extractPage(...args)
  }
  try {
    return await receive({ ...deps, extractPage: extractAndNote }, url, to, 0)
  } catch (error) {
    // A refusal of yt-dlp itself is final.
    if (isAsked || !mayBeHelped(error)) throw error
    return take(deps, await extractPage(url, to), to, { depth: DEEPEST_PAGE })
  }
}

/** Returns false where yt-dlp would find nothing else: no clip, a clip over a limit, a certain answer of the site. */
function mayBeHelped(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false
  const { site, reason } = error.details ?? {}
  if (reason === 'switched_off' || reason === 'not_found') return false
  if (error.code === 'source_fetch_failed') return site !== undefined
  return error.code === 'site_login_required' || error.code === 'unsupported_site_content'
}

async function receive(deps: Needs, url: string, to: Destination, depth: number): Promise<ReceivedSource> {
  const { enabled, keys } = deps.config.sites
  const known = URL.canParse(url) ? siteOf(new URL(url)) : undefined
  if (known) {
    const { site, find } = known
    if (!enabled.includes(site.name) && !site.isGone) throw switchedOff(site.name)
    const mayVisit = (next: URL) => isHostOf(site.hosts, next)
    const found = await find(startVisit(deps.remote, { site: site.name, keys, mayVisit, signal: to.signal }))
    return take(deps, found, to, { depth, site })
  }

  const opened = await openSource(deps.remote, url, to.path, { ...bounds(deps, to), mayVisit: isUnknown })
  if (opened.kind === 'file') return opened
  if (opened.kind === 'elsewhere') return receive(deps, opened.url.href, to, depth)
  if (opened.kind === 'manifest') return take(deps, { sources: [opened] }, to, { depth })
  if (!enabled.includes('other')) throw switchedOff('other')
  const { discover } = await import('../../ingest/sites/discover.ts')
  const visit = { site: 'other', keys, mayVisit: () => true, signal: to.signal, requestsMade: 1 }
  return take(deps, await discover(opened.page, startVisit(deps.remote, visit)), to, { depth })
}

/** A redirect to a known site is not followed: the site's adapter takes over. */
const isUnknown = (url: URL) => siteOf(url) === undefined

const bounds = (deps: Needs, { maxBytes, signal, endsAt, edit }: Destination) => ({
  maxBytes,
  signal,
  totalMs: Math.max(1, endsAt - performance.now()),
  limits: { types: deps.config.source.types, durationSeconds: longestSource(deps.config.source, edit) },
})

interface Finding {
  depth: number
  /** Site on whose hosts the files must be. */
  site?: { name: string; hosts: readonly string[] }
}

/** Takes the best source: after one that is missing, too large or no clip, the next is attempted. */
async function take(deps: Needs, found: Found, to: Destination, finding: Finding): Promise<ReceivedSource> {
  const { sources, durationSeconds, ...about } = found
  if (durationSeconds !== undefined) refuseSaidDuration(longestSource(deps.config.source, to.edit), durationSeconds)
  const refusals: ApiError[] = []
  for (const source of sources.slice(0, MAX_ATTEMPTS)) {
    try {
      const received = await takeOne(deps, source, to, finding)
      return { ...received, about: join(about, received.about) }
    } catch (error) {
      if (!(error instanceof ApiError && isOfOneSource(error))) throw error
      refusals.push(error)
    }
  }
  throw refusals.find(({ code }) => code === 'file_too_large') ?? refusals[0] ?? nothingFound(finding)
}

async function takeOne(deps: Needs, source: MediaSource, to: Destination, finding: Finding): Promise<ReceivedSource> {
  if (source.kind === 'page') {
    if (finding.depth >= DEEPEST_PAGE) throw nothingFound(finding)
    return receive(deps, source.url, to, finding.depth + 1)
  }
  if (source.kind === 'ytdlp') {
    if (!deps.extractPage) throw apiError('site_login_required', { details: { site: finding.site?.name } })
    return take(deps, await deps.extractPage(source.url, to), to, { depth: DEEPEST_PAGE })
  }
  const hosts = finding.site?.hosts
  const mayVisit = (url: URL) => hosts === undefined || isHostOf(hosts, url)
  const addresses = source.kind === 'separate' ? [source.picture, source.sound] : [source.url]
  if (!addresses.every((url) => URL.canParse(url) && mayVisit(new URL(url)))) throw nothingFound(finding)
  if (source.kind !== 'file') return deps.assembleManifest(source, { ...to, hosts })
  if ((source.bytes ?? 0) > to.maxBytes) throw apiError('file_too_large', { details: { limit: to.maxBytes } })
  const options = { ...bounds(deps, to), mayVisit, ownHeaders: source.headers }
  const opened = await openSource(deps.remote, source.url, to.path, options)
  if (opened.kind === 'file') return opened
  throw nothingFound(finding)
}

const nothingFound = ({ site }: Finding) => (site ? noClip(site.name) : apiError('unsupported_site_content'))

/** Returns true for failures that concern only this source. */
const isOfOneSource = ({ code }: ApiError) =>
  [
    'source_fetch_failed',
    'source_forbidden',
    'file_too_large',
    'corrupt_media',
    'unsupported_media_type',
    'unsupported_site_content',
  ].includes(code)

/** Whole seconds may be rounded up by less than one, so they get that tolerance; the probe measures exactly. */
function refuseSaidDuration(longest: number, seconds: number): void {
  const tolerance = Number.isInteger(seconds) ? 1 : undefined
  refuseDeclaredDuration({ durationSeconds: longest }, seconds, tolerance)
}

/** Author and title come from the outer page; the clip is unsafe if either says so. */
const join = (outer: About, inner: About = {}): About => ({
  title: outer.title ?? inner.title,
  nsfw: outer.nsfw || inner.nsfw,
  attribution: outer.attribution ?? inner.attribution,
})
