import { ALBUM_STAGE, albumSnippet } from '../../../core/albums/album-view.ts'
import type { ClipView } from '../../../core/clip-views/clip-view.ts'
import { embedSize } from '../../../core/clip-views/embed-snippet.ts'
import { secondsUntil } from '../../../http/lifetime.ts'
import { CACHE_SECONDS, type MostSize, thumbnail } from '../oembed.ts'
import type { AlbumView } from './album-view.ts'

/** The oEmbed of an album: its player (oembed.com 2.3.4.4). Undefined members are left out. */
export function albumOembed(album: AlbumView, cover: ClipView | undefined, limits: MostSize, now: Date) {
  const size = embedSize(ALBUM_STAGE, { width: limits.maxwidth, height: limits.maxheight })
  return {
    version: '1.0',
    type: 'rich',
    title: album.title,
    provider_name: album.siteName,
    provider_url: album.siteUrl,
    cache_age: Math.min(CACHE_SECONDS, secondsUntil(album.endsAt, now)),
    html: albumSnippet(album, album.urls.embed, size),
    ...size,
    ...(cover && thumbnail(cover, limits)),
  }
}
