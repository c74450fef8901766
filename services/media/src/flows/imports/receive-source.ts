// From an address to a file on the disk: a direct file with one request, a page by what its site or the page itself tells.
// The one rule: whatever was promised, only bytes decide what is taken. One request: open-source.ts. Sites: ../sites.
import { ApiError } from '@services/common/errors'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import type { FetchedFile } from '../../ingest/remote/save-body.ts'
import { noClip, switchedOff } from '../../ingest/sites/failures.ts'
import type { About, Found, Source } from '../../ingest/sites/site.ts'
import { isHostOf } from '../../ingest/sites/site.ts'
import { siteOf } from '../../ingest/sites/sites.ts'
import { startVisit } from '../../ingest/sites/visit.ts'
import { refuseToldDuration } from '../../make/probe/limits.ts'
import { openSource } from './open-source.ts'

export interface Destination {
  /** Does not exist yet. */
  path: string
  maxBytes: number
  signal: AbortSignal
  /** As performance.now() counts. */
  endsAt: number
  /** Whose share of probes and of yt-dlp it takes. */
  key: string
}

export interface ReceivedSource {
  file: FetchedFile
  /** What the page says; undefined for a direct file. */
  about?: About
}

/** A page, and one that it points to; what that points to is not followed. */
const DEEPEST_PAGE = 1
/** Of what a page offers. */
const MOST_TRIES = 6

type Needs = Pick<Deps, 'remote' | 'config' | 'assembleManifest' | 'extractPage'>

/**
 * Throws site_gone, site_login_required, unsupported_site_content, duration_exceeded, file_too_large and what
 * `openSource` throws.
 */
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
    // Its own refusal is the last word.
    if (isAsked || !mayBeHelped(error)) throw error
    return take(deps, await extractPage(url, to), to, { depth: DEEPEST_PAGE })
  }
}

/** Not a file that is no clip, not a clip that is over a limit, and not what is certain: yt-dlp finds no other. */
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

/** A redirect to a site that we know is not followed: the site is asked in its own way. */
const isUnknown = (url: URL) => siteOf(url) === undefined

const bounds = ({ config }: Needs, { maxBytes, signal, endsAt }: Destination) => ({
  maxBytes,
  signal,
  totalMs: Math.max(1, endsAt - performance.now()),
  limits: { durationSeconds: config.source.maxSeconds },
})

interface Finding {
  depth: number
  /** Whose hosts the files must be on. */
  site?: { name: string; hosts: readonly string[] }
}

/** The best that is there: what is missing, too large or no clip makes way for the next. */
async function take(deps: Needs, found: Found, to: Destination, finding: Finding): Promise<ReceivedSource> {
  const { sources, durationSeconds, ...about } = found
  if (durationSeconds !== undefined) refuseSaidDuration(deps, durationSeconds)
  const refusals: ApiError[] = []
  for (const source of sources.slice(0, MOST_TRIES)) {
    try {
      const received = await takeOne(deps, source, to, finding)
      return { file: received.file, about: join(about, received.about) }
    } catch (error) {
      if (!(error instanceof ApiError && isOfOneSource(error))) throw error
      refusals.push(error)
    }
  }
  throw refusals.find(({ code }) => code === 'file_too_large') ?? refusals[0] ?? nothingFound(finding)
}

async function takeOne(deps: Needs, source: Source, to: Destination, finding: Finding): Promise<ReceivedSource> {
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
  if (source.kind !== 'file') return { file: await deps.assembleManifest(source, { ...to, hosts }) }
  if ((source.bytes ?? 0) > to.maxBytes) throw apiError('file_too_large', { details: { limit: to.maxBytes } })
  const opened = await openSource(deps.remote, source.url, to.path, {
    ...bounds(deps, to),
    mayVisit,
    ownHeaders: source.headers,
  })
  if (opened.kind === 'file') return opened
  throw nothingFound(finding)
}

const nothingFound = ({ site }: Finding) => (site ? noClip(site.name) : apiError('unsupported_site_content'))

/** Failures that say something about this file and nothing about the next. */
const isOfOneSource = ({ code }: ApiError) =>
  [
    'source_fetch_failed',
    'source_forbidden',
    'file_too_large',
    'corrupt_media',
    'unsupported_media_type',
    'unsupported_site_content',
  ].includes(code)

/** Whole seconds are rounded ones: those may be over by less than one, which the probe will tell. */
function refuseSaidDuration({ config }: Needs, seconds: number): void {
  refuseToldDuration({ durationSeconds: config.source.maxSeconds }, seconds, Number.isInteger(seconds) ? 1 : undefined)
}

/** Who points to a clip says who it is from and what it is called; what either calls unsafe is. */
const join = (outer: About, inner: About = {}): About => ({
  title: outer.title ?? inner.title,
  nsfw: outer.nsfw || inner.nsfw,
  attribution: outer.attribution ?? inner.attribution,
})
