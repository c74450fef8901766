import { listAt, numberAt, parseJson, textAt } from './json.ts'
import { addressIn, metaOf, type Page } from './page.ts'
import type { Found, MediaSource } from './site.ts'
import { siteOf } from './sites.ts'
import type { Visit } from './visit.ts'

interface Candidate {
  url: URL
  /** Declared, or by the file name; the bytes decide in the end. */
  type: string
  height: number
  /** Certainty that this is the subject of the page: 0 declared, 1 shown on it, 2 its picture. */
  rank: number
}

/** Candidates that are tried at most, as any may turn out to be something else. */
const MAX_CANDIDATES = 6

/** Finds a page's clip by its link metadata (contract/media.md 3.4), with one oEmbed request for missing parts. */
export async function discover(page: Page, visit: Visit): Promise<Found> {
  const video = videoObjectOf(page)
  const own = sourcesOf(page, candidatesOf(page, video))
  const title = metaOf(page, 'og:title', 'twitter:title') ?? textAt(video, 'name') ?? page.title.trim()
  const user = textAt(video, 'author', 'name') ?? textAt(video, 'author')
  const oembed = own.length === 0 || !title || !user ? await askOembed(page, visit) : undefined
  const rating = metaOf(page, 'rating') ?? ''
  return {
    sources: own.length > 0 ? own : (oembed?.sources ?? []),
    title: title || oembed?.title,
    nsfw: /adult|mature|restricted|^rta-/i.test(rating) || undefined,
    attribution: { site: `${page.url.origin}/`, user: user ?? oembed?.user, url: page.url.href },
  }
}

function candidatesOf(page: Page, video: unknown): Candidate[] {
  const streamType = metaOf(page, 'twitter:player:stream:content_type')
  const [type, height] = [textAt(video, 'encodingFormat'), numberAt(video, 'height')]
  return [
    ...openGraphVideos(page).flatMap(({ url, ...said }) => candidate(page, url, { ...said, rank: 0 })),
    ...candidate(page, metaOf(page, 'twitter:player:stream'), { type: streamType, rank: 0 }),
    ...candidate(page, textAt(video, 'contentUrl'), { type, height, rank: 0 }),
    ...shownVideos(page, page),
    ...page.links
      .filter(({ rel, type }) => /\balternate\b/.test(rel) && /^(video\/|image\/gif)/.test(type))
      .flatMap(({ href, type }) => candidate(page, href, { type, rank: 1 })),
    ...gifOf(page, metaOf(page, 'og:image:secure_url', 'og:image')),
    ...gifOf(page, metaOf(page, 'twitter:image')),
  ]
}

type Declared = Pick<Candidate, 'rank'> & Partial<Candidate>

/** The candidate at this address; none if it is no address. */
function candidate(page: Page, text: string | undefined, { type = '', height = 0, rank }: Declared): Candidate[] {
  const url = addressIn(page, text)
  if (!url) return []
  const [, ending = ''] = /\.(\w{2,5})$/.exec(url.pathname.toLowerCase()) ?? []
  return [{ url, type: type.split(';')[0]?.trim().toLowerCase() || (TYPES[ending] ?? ''), height, rank }]
}

const shownVideos = (page: Page, { videos }: Pick<Page, 'videos'>) =>
  videos.flatMap(({ src, type, height }) => candidate(page, src, { type, height, rank: 1 }))

const gifOf = (page: Page, image: string | undefined) =>
  candidate(page, image, { rank: 2 }).filter(({ type }) => type === 'image/gif')

const TYPES: Record<string, string> = {
  mp4: 'video/mp4',
  m4v: 'video/mp4',
  webm: 'video/webm',
  gif: 'image/gif',
  gifv: 'text/html',
  m3u8: 'application/vnd.apple.mpegurl',
  mpd: 'application/dash+xml',
}

/** The properties of a video follow the tag that names it (ogp.me, structured properties). */
function openGraphVideos({ metas }: Page) {
  const videos: { property: string; url: string; type?: string; height?: number }[] = []
  for (const { name, content } of metas) {
    const last = videos.at(-1)
    if (/^og:video(:url|:secure_url)?$/.test(name)) {
      // Spellings of one address are one video; the secure one wins.
      const isSame = last && last.property !== name && (name === 'og:video:secure_url' || last.url === content)
      if (isSame) Object.assign(last, { url: content })
      else videos.push({ url: content, property: name })
    } else if (last && name === 'og:video:type') last.type = content
    else if (last && name === 'og:video:height') last.height = Number.parseInt(content, 10) || 0
  }
  return videos
}

function videoObjectOf({ data }: Page): unknown {
  const open = data.filter(({ type }) => type.startsWith('application/ld+json')).map(({ text }) => parseJson(text))
  for (let looked = 0; open.length > 0 && looked < MAX_NODES; looked++) {
    const node = open.shift()
    if (Array.isArray(node)) open.push(...node.slice(0, MAX_NODES))
    else if ([textAt(node, '@type'), ...listAt(node, '@type')].includes('VideoObject')) return node
    else if (typeof node === 'object' && node !== null) {
      open.push(...NESTING.map((name) => (node as Record<string, unknown>)[name]).filter(Boolean))
    }
  }
  return undefined
}

const MAX_NODES = 500
/** Members of JSON-LD that hold the video of a page. */
const NESTING = ['@graph', 'video', 'mainEntity', 'mainEntityOfPage', 'subjectOf']

const TYPE_ORDER = ['video/mp4', 'video/webm', 'image/gif', '']

/** Files in the order of their promise, then manifests, then players of known sites. */
function sourcesOf(page: Page, candidates: Candidate[]): MediaSource[] {
  const files = candidates
    .filter(({ type }) => TYPE_ORDER.includes(type))
    .toSorted(
      (a, b) =>
        a.rank - b.rank ||
        TYPE_ORDER.indexOf(a.type) - TYPE_ORDER.indexOf(b.type) ||
        b.height - a.height ||
        Number(b.url.host === page.url.host) - Number(a.url.host === page.url.host),
    )
    .map(({ url }): MediaSource => ({ kind: 'file', url: url.href }))
  const manifests = candidates.flatMap(({ url, type }): MediaSource[] => {
    const format = /mpegurl/.test(type) ? 'hls' : type === 'application/dash+xml' ? 'dash' : undefined
    return format ? [{ kind: 'manifest', format, url: url.href }] : []
  })
  const declared = candidates.filter(({ rank }) => rank === 0).map(({ url }) => url)
  const players = [...declared, addressIn(page, metaOf(page, 'twitter:player'))].filter((url) => url !== undefined)
  return unique([...files, ...manifests, ...knownPages(players)]).slice(0, MAX_CANDIDATES)
}

/** Takes the first only: a page is about one clip, and each costs several requests. */
function knownPages(urls: URL[]): MediaSource[] {
  const known = urls.find((url) => siteOf(url) !== undefined)
  return known ? [{ kind: 'page', url: known.href }] : []
}

const unique = (sources: MediaSource[]) => [...new Map(sources.map((source) => [addressOf(source), source])).values()]
const addressOf = (source: MediaSource) => ('url' in source ? source.url : source.picture)

/** Ignores failures, because the answer is optional. */
async function askOembed(page: Page, visit: Visit) {
  const link = page.links.find(({ rel, type }) => /\balternate\b/.test(rel) && type === 'application/json+oembed')
  const url = addressIn(page, link?.href)
  if (!url) return undefined
  const answer = await visit.get(url.href).catch(() => undefined)
  const oembed = answer?.status === 200 ? answer.json() : undefined
  const html = textAt(oembed, 'html')
  const { readPage } = await import('./read-page.ts')
  const shown = html ? readPage(html, page.url) : undefined
  const found = [...(shown ? shownVideos(page, shown) : []), ...gifOf(page, textAt(oembed, 'url'))]
  const frames = shown?.frames.flatMap((src) => addressIn(page, src) ?? []) ?? []
  return {
    sources: [...sourcesOf(page, found).filter(({ kind }) => kind !== 'page'), ...knownPages(frames)],
    title: textAt(oembed, 'title'),
    user: textAt(oembed, 'author_name'),
  }
}
