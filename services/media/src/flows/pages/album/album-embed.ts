// The page at /a/{id}/embed: one clip after another, each a page of its own, so that it works without script.
import { html } from '@services/common/html'
import { type ClipView, titleOf } from '../../../core/clip-views/clip-view.ts'
import { albumWords } from '../../../words/album.ts'
import type { Language } from '../../../words/language.ts'
import { mediaDocument, type Page, styleOf } from '../document.ts'
import { player, playerSources } from '../player.ts'
import { albumEmbedCss } from './album-styles.ts'
import { type AlbumView, withMember } from './album-view.ts'

const style = styleOf(albumEmbedCss)

/** A clip among those that the album shows; `before` and `after` are ids. */
export interface AlbumPlace {
  clip: ClipView
  place: number
  total: number
  before: string | null
  after: string | null
}

export function albumEmbed(
  album: AlbumView,
  { clip, place, total, before, after }: AlbumPlace,
  language: Language,
): Page {
  const words = albumWords[language]
  const scriptUrl = `${album.siteUrl}embed.js`
  const addressOf = (id: string) => withMember(album.urls.embed, 'at', id)
  return mediaDocument({
    language,
    title: `${titleOf(clip)} · ${album.title}`,
    siteUrl: album.siteUrl,
    isFramed: true,
    head: html`<link rel="canonical" href="${clip.urls.page}">
<script src="${scriptUrl}" defer></script>
`,
    style,
    ...playerSources(clip),
    modules: ['album-embed.js'],
    scripts: [scriptUrl],
    body: html`<main>${player(clip, clip, words)}
${album.opensPage && html`<a class="home" href="${album.urls.page}" target="_blank" rel="noopener" dir="auto">${album.title}</a>\n`}${clip.urls.report && html`<a class="home report" href="${clip.urls.report}" target="_blank" rel="noopener nofollow">${words.report}</a>\n`}<nav aria-label="${album.title}">
${before !== null && html`<a class="arrow" rel="prev" href="${addressOf(before)}" aria-label="${words.previous}">&lsaquo;</a>\n`}<span class="place">${place} / ${total}</span>
${after !== null && html`<a class="arrow" rel="next" href="${addressOf(after)}" aria-label="${words.next}">&rsaquo;</a>\n`}</nav></main>`,
  })
}

/** The page in the frame of an unknown or an empty album. */
export function missingAlbumEmbed(
  { siteName, siteUrl }: Pick<AlbumView, 'siteName' | 'siteUrl'>,
  { language, title }: { language: Language; title?: string },
): Page {
  const words = albumWords[language]
  const message = title === undefined ? words.missing : words.empty
  return mediaDocument({
    language,
    title: `${title ?? message} · ${siteName}`,
    siteUrl,
    isFramed: true,
    style,
    body: html`<main><div class="placeholder"><div class="notice"><strong>${message}</strong><a href="${siteUrl}" target="_blank" rel="noopener">${siteName}</a></div></div></main>`,
  })
}
