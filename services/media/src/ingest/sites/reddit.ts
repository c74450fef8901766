import { changed, loginRequired, noClip, notFound, requireAnswer } from './failures.ts'
import { at, listAt, numberAt, textAt } from './json.ts'
import { defineSite, type Found, fileAt, type MediaSource, pathOf } from './site.ts'
import type { Answer, Visit } from './visit.ts'

type Reference = { id: string } | { short: string }

const ID = /^[a-z0-9]{4,10}$/i

export function readReddit(url: URL): Reference | undefined {
  const path = pathOf(url)
  const [first = '', second = '', third = ''] = path
  if (url.hostname === 'redd.it' || url.hostname === 'www.redd.it') return ID.test(first) ? { id: first } : undefined
  // The id of a video is not that of its post. A longer path is a file.
  if (url.hostname === 'v.redd.it') return path.length === 1 ? { short: `https://v.redd.it/${first}` } : undefined
  if (!/(^|\.)reddit\.com$/.test(url.hostname)) return undefined
  const at = path.indexOf('comments')
  if (at === 0 || at === 2) return ID.test(path[at + 1] ?? '') ? { id: path[at + 1] as string } : undefined
  if (first === 'gallery') return ID.test(second) ? { id: second } : undefined
  if (first === 'video') return second ? { short: `https://www.reddit.com/video/${second}` } : undefined
  const isShare = /^(r|u|user)$/.test(first) && third === 's' && path.length === 4
  return isShare ? { short: `https://www.reddit.com${url.pathname}` } : undefined
}

/** Asks through the operator's app if there is one: without it, many addresses of data centres are refused. */
export const reddit = defineSite<Reference>({
  name: 'reddit',
  hosts: ['reddit.com', 'redd.it', 'redditmedia.com'],
  read: readReddit,
  find: async (reference, visit) => {
    const id = 'id' in reference ? reference.id : await follow(reference.short, visit)
    const answer = await askForPost(id, visit)
    refuseHidden(answer)
    requireAnswer('reddit', answer)
    const post = at(answer.json(), 0, 'data', 'children', 0, 'data')
    if (!post) throw changed('reddit')
    return readPost(post)
  },
})

async function follow(short: string, visit: Visit): Promise<string> {
  const answer = await visit.get(short, { until: (url) => idOf(url) !== undefined })
  const id = idOf(answer.next ?? answer.url)
  if (id) return id
  if (/^\/login/.test(answer.url.pathname)) throw loginRequired('reddit')
  requireAnswer('reddit', answer)
  throw notFound('reddit')
}

const idOf = (url: URL): string | undefined => {
  const reference = readReddit(url)
  return reference && 'id' in reference ? reference.id : undefined
}

async function askForPost(id: string, visit: Visit): Promise<Answer> {
  const { redditClientId, redditClientSecret } = visit.keys
  if (redditClientId && redditClientSecret) {
    const authorization = `Basic ${Buffer.from(`${redditClientId}:${redditClientSecret}`).toString('base64')}`
    const form = { grant_type: 'client_credentials' }
    const granted = await visit.get('https://www.reddit.com/api/v1/access_token', { authorization, form })
    requireAnswer('reddit', granted)
    const token = textAt(granted.json(), 'access_token')
    if (!token) throw changed('reddit')
    return visit.get(`https://oauth.reddit.com/comments/${id}?raw_json=1`, { authorization: `Bearer ${token}` })
  }
  const address = `https://www.reddit.com/comments/${id}/.json?raw_json=1`
  const answer = await visit.get(address, { cookie: ADULT })
  if (answer.status !== 403 || reasonIn(answer)) return answer
  // Some client addresses need a visitor id (`loid`), which the old pages hand out.
  const { cookies } = await visit.get('https://old.reddit.com/', { cookie: ADULT })
  const visitor = cookies.map((cookie) => /^loid=[^;]+/.exec(cookie)?.[0]).find(Boolean)
  return visitor ? visit.get(address, { cookie: `${visitor}; ${ADULT}` }) : answer
}

/** Cookie without which the site asks for the visitor's age. */
const ADULT = 'over18=1'

const reasonIn = (answer: Answer) => textAt(answer.json(), 'reason')

/** Closed communities give their reason in JSON; a wall against bots is HTML. */
function refuseHidden(answer: Answer): void {
  if (answer.status !== 403 && answer.status !== 404) return
  const reason = reasonIn(answer)
  if (reason === 'private' || reason === 'quarantined' || reason === 'gold_only') throw loginRequired('reddit')
  if (reason === 'banned') throw notFound('reddit')
}

function readPost(post: unknown): Found {
  if (textAt(post, 'removed_by_category')) throw notFound('reddit')
  const original = at(post, 'crosspost_parent_list', 0) ?? post
  const sources = [...readVideo(original), ...readPreview(original), ...readGallery(original), ...readLink(original)]
  if (sources.length === 0) throw noClip('reddit')
  const author = textAt(post, 'author')
  const isNamed = author && author !== '[deleted]'
  const path = textAt(post, 'permalink')
  return {
    sources,
    title: textAt(post, 'title'),
    nsfw: at(post, 'over_18') === true,
    // Whole seconds, of the post's own video.
    durationSeconds: numberAt(videoOf(original), 'duration'),
    attribution: { site: 'reddit', ...(isNamed ? { user: author } : { url: path && `https://www.reddit.com${path}` }) },
  }
}

const videoOf = (post: unknown) => at(post, 'secure_media', 'reddit_video') ?? at(post, 'media', 'reddit_video')

/** Only the manifest has sound; the file beside it has only the picture. */
function readVideo(post: unknown): MediaSource[] {
  const video = videoOf(post) ?? at(post, 'preview', 'reddit_video_preview')
  const file = files(textAt(video, 'fallback_url'))
  const manifests = (['dash', 'hls'] as const).flatMap((format): MediaSource[] => {
    const url = textAt(video, `${format}_url`)
    return url ? [{ kind: 'manifest', format, url: plain(url) }] : []
  })
  const isSilent = at(video, 'is_gif') === true || at(video, 'has_audio') === false
  return isSilent ? [...file, ...manifests] : [...manifests, ...file]
}

function readPreview(post: unknown): MediaSource[] {
  const variants = at(post, 'preview', 'images', 0, 'variants')
  return files(textAt(variants, 'mp4', 'source', 'url'), textAt(variants, 'gif', 'source', 'url'))
}

function readGallery(post: unknown): MediaSource[] {
  const media = listAt(post, 'gallery_data', 'items').map((item) =>
    at(post, 'media_metadata', textAt(item, 'media_id') ?? ''),
  )
  const moving = media.find((one) => textAt(one, 'e') === 'AnimatedImage')
  return files(textAt(moving, 's', 'mp4'), textAt(moving, 's', 'gif'))
}

/** A post may link to a clip elsewhere. A link to reddit itself is none. */
function readLink(post: unknown): MediaSource[] {
  const link = textAt(post, 'url_overridden_by_dest') ?? textAt(post, 'url')
  const url = link && URL.parse(plain(link), 'https://www.reddit.com')
  if (!url || at(post, 'is_self') === true || videoOf(post) || readReddit(url)) return []
  if (/(^|\.)reddit\.com$/.test(url.hostname) || /\.(jpe?g|png|webp)$/i.test(url.pathname)) return []
  return [{ kind: 'page', url: url.href }]
}

const files = (...urls: (string | undefined)[]) => urls.flatMap((url) => fileAt(url && plain(url)))

/** `raw_json` asks for plain text; answers that ignore it escape addresses as in HTML. */
const plain = (url: string) => url.replaceAll('&amp;', '&')
