import type { Config } from '../../../config.ts'
import { albumUrls } from '../../../core/albums/album-view.ts'
import type { ShownAlbum } from '../../../core/albums/find-public-album.ts'

/** An album as pages show it: plain values, all URLs absolute. */
export type AlbumView = ReturnType<typeof toAlbumView>

export function toAlbumView({ album, link }: ShownAlbum, site: Config['site']) {
  const { id, title, description, visibility } = album
  const isListed = visibility === 'public'
  const urls = albumUrls(id, site, link)
  return {
    ...{ id, title, isListed },
    description: description ?? undefined,
    urls: { ...urls, feed: isListed ? `${urls.page}/feed.xml` : undefined },
    /** The album is private: its pages are for their viewer alone. */
    isLinked: link !== undefined,
    /** False for a link that shows the player alone. */
    opensPage: link === undefined || link.queryOf('page') !== undefined,
    endsAt: link?.expiresAt,
    filesRedirectUrl: site.filesRedirectUrl,
    siteName: site.name,
    /** Home page, with a slash at its end. */
    siteUrl: `${site.baseUrl}/`,
    oembedEndpoint: `${site.baseUrl}/oembed`,
  }
}

/** Adds a member to the query of an address, which may hold a link. */
export const withMember = (url: string, name: string, value: string): string =>
  `${url}${url.includes('?') ? '&' : '?'}${name}=${value}`
