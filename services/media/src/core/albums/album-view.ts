import { html, toText } from '@services/common/html'
import type { Kysely } from 'kysely'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import type { Link } from '../clip-access/share-links.ts'
import { toView } from '../clip-views/clip-view.ts'
import type { Size } from '../clips/geometry.ts'
import { type Album, etagOf } from './albums.store.ts'
import { findCovers } from './shown-items.store.ts'

/** Addresses of an album; those of a private one are signed by its link, as far as it leads. */
export function albumUrls(id: string, { baseUrl }: Pick<Config['site'], 'baseUrl'>, link?: Link) {
  const address = `${baseUrl}/a/${id}`
  const page = address + (link?.queryOf('page') ?? '')
  return {
    page,
    embed: `${address}/embed${link?.queryOf('embed') ?? ''}`,
    oembed: `${baseUrl}/oembed?url=${encodeURIComponent(page)}`,
  }
}

/** Pixels of the player of an album, which are those of the largest clip. */
export const ALBUM_STAGE = { width: 960, height: 640 }

/** The iframe for other sites; `url` is that of the player. */
export function albumSnippet(
  { title }: Pick<Album, 'title'>,
  url: string,
  { width, height }: Size = ALBUM_STAGE,
): string {
  return toText(
    html`<iframe src="${url}" width="${width}" height="${height}" style="max-width:100%;height:auto;aspect-ratio:${width}/${height}" frameborder="0" scrolling="no" allowfullscreen allow="autoplay; fullscreen" loading="lazy" title="${title}"></iframe>`,
  )
}

export type AlbumDetails = Awaited<ReturnType<typeof describeAlbums>>[number]

/** Albums as their owner sees them. */
export async function describeAlbums(
  db: Kysely<DB>,
  albums: readonly Album[],
  { site, now }: { site: Config['site']; now: Date },
) {
  const ids = albums.map(({ id }) => id)
  const covers = await findCovers(db, ids, now)
  return albums.map((album) => {
    const { id, title, description, visibility, count, tokenId, createdAt, updatedAt } = album
    const { embed, ...urls } = albumUrls(id, site)
    const cover = covers.get(id)
    return {
      ...{ id, ...urls, embed: albumSnippet(album, embed), title, description, visibility, count },
      cover: cover ? toView(cover, site).urls.jpg : null,
      etag: etagOf(album),
      token_id: tokenId,
      created_at: createdAt,
      updated_at: updatedAt,
    }
  })
}
