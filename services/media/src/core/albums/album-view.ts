import { html, toText } from '@services/common/html'
import type { Config } from '../../config.ts'
import type { Album } from './albums.store.ts'

/** Addresses of an album without a link. */
export function albumUrls(id: string, { baseUrl }: Pick<Config['site'], 'baseUrl'>) {
  const page = `${baseUrl}/a/${id}`
  return { page, embed: `${page}/embed`, oembed: `${baseUrl}/oembed?url=${encodeURIComponent(page)}` }
}

/** Pixels of the player of an album, which are those of the largest clip. */
export const ALBUM_STAGE = { width: 960, height: 640 }

/** The iframe for other sites; `url` is that of the player. */
export function albumSnippet({ title }: Pick<Album, 'title'>, url: string): string {
  const { width, height } = ALBUM_STAGE
  return toText(
    html`<iframe src="${url}" width="${width}" height="${height}" style="max-width:100%;height:auto;aspect-ratio:${width}/${height}" frameborder="0" scrolling="no" allowfullscreen allow="autoplay; fullscreen" loading="lazy" title="${title}"></iframe>`,
  )
}
