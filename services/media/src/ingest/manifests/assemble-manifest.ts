/**
 * This folder makes one local file of an HLS or DASH manifest, or of separate picture and sound. All is fetched through
 * the guard, piece by piece within one budget; ffmpeg only sees local files, and copies. A manifest is a stranger's
 * list of orders, and each address is checked before any is followed. Tests: beside the files and
 * test/manifests-and-ytdlp.slow.test.ts.
 */
import { rename } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { Semaphore } from '@services/common/concurrency/semaphore'
import type { Config } from '../../config.ts'
import { type Edit, longestSource, neededSpan } from '../../core/edits/edit.ts'
import { apiError } from '../../errors.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import type { WorkDirectory } from '../../make/jobs/work-directory.ts'
import { hashFile } from '../../store/blobs/measure.ts'
import type { Remote } from '../remote/fetch-remote.ts'
import { readBody } from '../remote/read-body.ts'
import { requireOk } from '../remote/require-file.ts'
import type { FetchedFile } from '../remote/save-body.ts'
import { upstreamFailure } from '../remote/upstream-error.ts'
import { type AssembleManifest, isHostOf } from '../sites/site.ts'
import { downloadTracks } from './download-tracks.ts'
import { type ManifestLimits, refuseManifest, type Track } from './manifest.ts'
import { type ManifestText, readManifests } from './read-manifests.ts'
import { remux } from './remux.ts'

type ManifestSource = Parameters<AssembleManifest>[0]
interface Needs {
  config: Pick<Config, 'source'>
  remote: Remote
  work: WorkDirectory
  tools: MediaTools
  probes: Semaphore
}

/** Limits of one manifest (contract/media.md 3.6). */
const MAX_MANIFEST_BYTES = 1024 ** 2
const MAX_PIECES = 200

/**
 * Writes the clip to the new `path` as mp4, or as webm if all tracks are; removes everything else. Throws
 * unsupported_site_content (`details.reason`), duration_exceeded before any piece is fetched, source_forbidden,
 * source_fetch_failed, file_too_large, corrupt_media, unsupported_media_type, or the reason of `signal`.
 */
export async function assembleManifest(
  deps: Needs,
  ...[source, { path, hosts, maxBytes, key, signal: callerSignal, endsAt, edit }]: Parameters<AssembleManifest>
): ReturnType<AssembleManifest> {
  callerSignal.throwIfAborted()
  const totalMs = Math.max(1, endsAt - performance.now())
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(upstreamFailure('timeout')), totalMs)
  const signal = AbortSignal.any([callerSignal, late.signal])
  await using work = await deps.work.newDirectory()
  try {
    const job = { directory: work.path, signal, totalMs, hosts, headers: source.headers, edit }
    const { tracks, mayVisit } = await findTracks(deps, source, job)
    const files = await downloadTracks(deps, tracks, { ...job, maxBytes, mayVisit })
    const missing = tracks.map(({ missingSeconds = 0 }) => missingSeconds)
    const made = await remux(deps, files, { directory: work.path, maxBytes, key, signal, missing })
    const file = await describe(made, maxBytes, signal)
    await rename(made, path)
    const [{ missingSeconds } = {}] = tracks
    return missingSeconds === undefined ? { file } : { file, missingSeconds }
  } finally {
    clearTimeout(timer)
    // One of two manifests may still be in transfer.
    late.abort()
  }
}

interface Job {
  directory: string
  signal: AbortSignal
  totalMs: number
  hosts: readonly string[] | undefined
  headers: Record<string, string> | undefined
  edit: Edit | undefined
}

async function findTracks(
  deps: Needs,
  source: ManifestSource,
  job: Job,
): Promise<{ tracks: Track[]; mayVisit: HostRule }> {
  if (source.kind === 'separate') {
    const tracks = [source.picture, source.sound].map((url) => ({ pieces: [{ url }] }))
    // No manifest names the files, so only the guard decides.
    return { tracks, mayVisit: job.hosts ? hostRule([], job.hosts) : () => true }
  }
  const { source: limit } = deps.config
  const span = neededSpan(job.edit, limit.maxSeconds)
  const limits = { seconds: longestSource(limit, job.edit), pieces: MAX_PIECES, span }
  const requested = URL.parse(source.url)
  const own = requested ? [requested] : []
  // The resolver's hosts apply to the manifest too.
  const mayMove = job.hosts ? hostRule(own, job.hosts) : () => true
  const first = await fetchManifest(deps, { kind: source.format, url: source.url }, mayMove, job)
  const mayVisit = hostRule([...own, new URL(first.url)], job.hosts)
  const tracks = await tracksOf(deps, first, { mayVisit, limits, job })
  for (const { url } of tracks.flatMap(({ pieces }) => pieces)) requireAllowed(mayVisit, url)
  return { tracks, mayVisit }
}

type HostRule = (url: URL) => boolean

/** Permits the manifest's site and its resolver's hosts; otherwise a manifest could direct 200 requests anywhere. */
const hostRule =
  (own: readonly URL[], allowedHosts: readonly string[] = []): HostRule =>
  (url) =>
    /^https?:$/.test(url.protocol) &&
    (own.some((one) => siteOf(one.hostname) === siteOf(url.hostname)) || isHostOf(allowedHosts, url))

/**
 * The registrable domain: two labels, or three below short ones such as `co.uk`. Without the list of public suffixes,
 * neighbours below `github.io` count as one site, which costs them a few requests at most.
 */
function siteOf(hostname: string): string {
  if (isIP(hostname.replace(/^\[|\]$/g, ''))) return hostname
  const labels = hostname.replace(/\.$/, '').split('.')
  const [second = '', top = ''] = labels.slice(-2)
  return labels.slice(second.length <= 3 && top.length === 2 ? -3 : -2).join('.')
}

/** A master lists playlists of segments; a playlist must not list others. */
async function tracksOf(
  deps: Needs,
  first: ManifestText,
  { mayVisit, limits, job }: { mayVisit: HostRule; limits: ManifestLimits; job: Job },
): Promise<Track[]> {
  const read = (texts: ManifestText[]) => readManifests(deps, texts, { ...job, limits })
  const [reading] = await read([first])
  if (!reading) throw refuseManifest('unreadable')
  if ('tracks' in reading) return present(reading.tracks)
  const urls = present(reading.playlists)
  for (const url of urls) requireAllowed(mayVisit, url)
  const texts = await Promise.all(urls.map((url) => fetchManifest(deps, { kind: first.kind, url }, mayVisit, job)))
  return (await read(texts)).map((inner) => {
    if (!('tracks' in inner)) throw refuseManifest('nested')
    return inner.tracks[0]
  })
}

const present = <T>(both: [T, T?]): T[] => both.filter((one) => one !== undefined)

function requireAllowed(mayVisit: HostRule, url: string): void {
  const parsed = URL.parse(url)
  if (!parsed || !mayVisit(parsed)) throw apiError('source_forbidden', { cause: 'not on the site of the manifest' })
}

async function fetchManifest(
  { remote }: Needs,
  { kind, url }: Pick<ManifestText, 'kind' | 'url'>,
  mayVisit: HostRule,
  { headers, signal, totalMs }: Job,
): Promise<ManifestText> {
  return remote.fetch(url, { ownHeaders: headers, mayVisit, signal, totalMs }, async (answer) => {
    if (answer.next) throw apiError('source_forbidden', { cause: 'redirected to another site' })
    requireOk(answer)
    const bytes = await readBody(answer, MAX_MANIFEST_BYTES + 1)
    if (bytes.length > MAX_MANIFEST_BYTES) throw refuseManifest('too_large')
    return { kind, text: bytes.toString('utf8'), url: answer.url.href }
  })
}

async function describe(made: string, maxBytes: number, signal: AbortSignal): Promise<FetchedFile> {
  const { bytes, sha256 } = await hashFile(made, signal)
  if (bytes > maxBytes) throw apiError('file_too_large', { details: { limit: maxBytes } })
  return { bytes, sha256, contentType: made.endsWith('webm') ? 'video/webm' : 'video/mp4' }
}
