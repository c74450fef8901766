import { loginRequired, noClip, requireAnswer } from './failures.ts'
import { addressIn, metaOf, type Page } from './page.ts'
import { defineSite, type Found, fileAt, type MediaSource, pathOf } from './site.ts'

export function readInstagram(url: URL): string | undefined {
  if (!/^((www|m)\.)?(instagram\.com|instagr\.am)$/.test(url.hostname)) return undefined
  const path = pathOf(url)
  const at = path.findIndex((part) => /^(p|reels?|tv)$/.test(part))
  const code = path[at + 1] ?? ''
  return at >= 0 && at <= 1 && /^[\w-]{5,40}$/.test(code) && code !== 'audio' ? code : undefined
}

/**
 * Without an account only the embed page works: it has the videos of some public posts, for some client addresses. All
 * else leads to the login (contract/media.md 3.2) and is left to yt-dlp with the operator's cookies.
 */
export const instagram = defineSite<string>({
  name: 'instagram',
  hosts: ['instagram.com', 'instagr.am', 'cdninstagram.com', 'fbcdn.net'],
  read: readInstagram,
  find: async (code, visit) => {
    const answer = await visit.get(`https://www.instagram.com/p/${code}/embed/captioned/`)
    const isWall = /^\/(accounts|challenge)\b/.test(answer.url.pathname) || answer.next !== undefined
    if (isWall || answer.status === 403) throw loginRequired('instagram')
    requireAnswer('instagram', answer)
    const page = await answer.page()
    const sources = readVideos(answer.text, page)
    if (sources.length === 0 && memberOf(answer.text, 'is_video') === 'false') throw noClip('instagram')
    if (sources.length === 0) throw loginRequired('instagram')
    return { sources, ...about(answer.text, page, code) }
  },
})

function readVideos(html: string, page: Page): MediaSource[] {
  const named = [memberOf(html, 'video_url'), metaOf(page, 'og:video:secure_url', 'og:video')]
  return named.flatMap((text) => fileAt(addressIn(page, text)?.href))
}

function about(html: string, page: Page, code: string): Omit<Found, 'sources'> {
  const user = memberOf(html, 'username')
  const attribution = { site: 'instagram', ...(user ? { user } : { url: `https://www.instagram.com/p/${code}/` }) }
  return { title: metaOf(page, 'og:title'), attribution }
}

/**
 * The data is JSON inside a JSON string inside a script, so its quotes are escaped once, twice or not at all. No two
 * repetitions may match the same character, nor may one begin within its own run: a page can be all backslashes.
 */
function memberOf(html: string, name: string): string | undefined {
  const found = new RegExp(`"${name}\\\\*"\\s*:\\s*(?:\\\\*"([^"]{1,4000})"|(true|false))`).exec(html)
  const text = found?.[1]?.replace(/(?<!\\)\\+$/, '')
  return found?.[2] ?? text?.replaceAll(/(?<!\\)\\+u0026/g, '&').replaceAll(/(?<!\\)\\+(?=\/)/g, '')
}
