import { changed, loginRequired, noClip, requireAnswer } from './failures.ts'
import { at, listAt, numberAt, textAt } from './json.ts'
import { defineSite, type Found, type MediaSource, pathOf } from './site.ts'
import type { Visit } from './visit.ts'

type Reference = { id: string; video: number } | { short: string }

/** Sites that show the same posts under the same paths; the post is requested from twitter itself. */
const MIRRORS = ['fxtwitter.com', 'vxtwitter.com', 'fixupx.com', 'fixvx.com', 'twittpr.com']

export function readTwitter(url: URL): Reference | undefined {
  const host = url.hostname.replace(/^(www|m|mobile|d|g)\./, '')
  const path = pathOf(url)
  if (host === 't.co') return path.length === 1 ? { short: `https://t.co/${path[0]}` } : undefined
  if (!['twitter.com', 'x.com', ...MIRRORS].includes(host)) return undefined
  // /user/status/1, /i/status/1 and /i/web/status/1, with /video/2 or /photo/1 behind.
  const at = path.findIndex((part) => part === 'status' || part === 'statuses')
  const id = path[at + 1] ?? ''
  if (at < 1 || at > 2 || !/^\d{1,20}$/.test(id)) return undefined
  return { id, video: path[at + 2] === 'video' ? Number(path[at + 3]) || 1 : 1 }
}

/** Reads the data of embedded posts, which is public without an account. */
export const twitter = defineSite<Reference>({
  name: 'twitter',
  hosts: ['twitter.com', 'x.com', 't.co', 'twimg.com', ...MIRRORS],
  read: readTwitter,
  find: (reference, visit) => ('short' in reference ? follow(reference.short, visit) : findPost(reference, visit)),
})

/** A short link may lead anywhere, so its target is treated like a requested address. */
async function follow(short: string, visit: Visit): Promise<Found> {
  const answer = await visit.get(short, { until: () => true })
  if (answer.next) return { sources: [{ kind: 'page', url: answer.next.href }] }
  requireAnswer('twitter', answer)
  throw changed('twitter')
}

async function findPost({ id, video }: { id: string; video: number }, visit: Visit): Promise<Found> {
  const query = new URLSearchParams({ id, token: tokenOf(id), lang: 'en' })
  const answer = await visit.get(`https://cdn.syndication.twimg.com/tweet-result?${query}`)
  requireAnswer('twitter', answer)
  const post = answer.json()
  const kind = textAt(post, '__typename')
  // Age limits and protected accounts.
  if (kind === 'TweetTombstone') throw loginRequired('twitter')
  if (kind !== 'Tweet') throw changed('twitter')
  const clips = listAt(post, 'mediaDetails').filter((media) =>
    /^(video|animated_gif)$/.test(textAt(media, 'type') ?? ''),
  )
  const clip = clips[video - 1] ?? clips[0]
  if (!clip) throw noClip('twitter')
  const user = textAt(post, 'user', 'screen_name')
  const milliseconds = numberAt(clip, 'video_info', 'duration_millis')
  return {
    sources: readVariants(clip),
    title: titleOf(textAt(post, 'text')),
    nsfw: at(post, 'possibly_sensitive') === true,
    durationSeconds: milliseconds ? milliseconds / 1000 : undefined,
    attribution: { site: 'twitter', user, ...(user ? {} : { url: `https://x.com/i/status/${id}` }) },
  }
}

/** The arithmetic of the site's own script, without which it does not answer. */
export const tokenOf = (id: string): string => ((Number(id) / 1e15) * Math.PI).toString(36).replace(/0+|\./g, '')

/** The highest bitrate first; the playlist, with separate sound and picture, last. */
function readVariants(clip: unknown): MediaSource[] {
  const variants = listAt(clip, 'video_info', 'variants').flatMap((variant) => {
    const url = textAt(variant, 'url')
    return url ? [{ url, type: textAt(variant, 'content_type'), bitrate: numberAt(variant, 'bitrate') ?? 0 }] : []
  })
  const files = variants.filter(({ type }) => type === 'video/mp4').toSorted((a, b) => b.bitrate - a.bitrate)
  const playlists = variants.filter(({ type }) => /mpegurl/i.test(type ?? ''))
  return [
    ...files.map(({ url }): MediaSource => ({ kind: 'file', url })),
    ...playlists.map(({ url }): MediaSource => ({ kind: 'manifest', format: 'hls', url })),
  ]
}

/** Drops shortened addresses and unescapes the three characters that the site escapes. */
const titleOf = (text = '') =>
  text
    .replaceAll(/https:\/\/t\.co\/\w+/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
    .trim()
