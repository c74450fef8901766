import { defineSite, isHostOf, pathOf } from './site.ts'

/** The address for yt-dlp: videos, reels, share links, plugins and fb.watch. */
export function readFacebook(url: URL): string | undefined {
  const [first = '', second = '', third = ''] = pathOf(url)
  if (url.hostname === 'fb.watch') return first ? url.href : undefined
  if (!isHostOf(['facebook.com'], url)) return undefined
  if (first === 'watch' || /^(video|story)\.php$/.test(first)) return url.searchParams.has('v') ? url.href : undefined
  if (first === 'plugins' && second === 'video.php') {
    const shown = URL.parse(url.searchParams.get('href') ?? '')
    return shown && shown.pathname !== url.pathname ? readFacebook(shown) : undefined
  }
  const isVideo = first === 'reel' || second === 'videos' || (first === 'share' && /^[vr]$/.test(second) && third)
  return isVideo && (second || third) ? url.href : undefined
}

/**
 * Left to yt-dlp: the pages change every few months, so a parser of ours would be wrong most of the time
 * (contract/media.md 3.2).
 */
export const facebook = defineSite<string>({
  name: 'facebook',
  hosts: ['facebook.com', 'fb.watch', 'fbcdn.net'],
  read: readFacebook,
  find: async (url) => ({ sources: [{ kind: 'ytdlp', url }], attribution: { site: 'https://www.facebook.com/', url } }),
})
