// The page at /a/{id}: a grid of clips. Functions from plain data; texts of owners go through `html`. It works without
// script; assets/album.js adds playing under the pointer and the arrow keys.
import { type Html, html, jsonLd } from '@services/common/html'
import { type ClipView, titleOf } from '../../../core/clip-views/clip-view.ts'
import { albumWords } from '../../../words/album.ts'
import type { Language } from '../../../words/language.ts'
import { mediaDocument, type Page, styleOf } from '../document.ts'
import { mediaOf, metaOf, type Property, videoData } from '../head-tags.ts'
import { gate } from '../player.ts'
import { albumPageCss } from './album-styles.ts'
import type { AlbumView } from './album-view.ts'
import { placeholderPicture } from './placeholder.ts'

const style = styleOf(albumPageCss)

/** A part of an album, in the order of its owner. */
export interface AlbumPart {
  items: readonly ClipView[]
  /** Clip of previews, public and not sensitive. */
  cover: ClipView | undefined
  /** Address of this part, and of the next if there is one. */
  url: string
  next: string | undefined
  /** False for parts after the first. */
  isFirst: boolean
}

export function albumPage(album: AlbumView, part: AlbumPart, language: Language): Page {
  const words = albumWords[language]
  const { items, next, isFirst } = part
  const more = [
    ...(isFirst ? [] : [html`<a class="onward" href="${album.urls.page}">${words.first}</a>`]),
    ...(next === undefined ? [] : [html`<a class="onward" href="${next}" rel="next">${words.more}</a>`]),
  ]
  return mediaDocument({
    language,
    title: `${album.title} · ${album.siteName}`,
    siteUrl: album.siteUrl,
    isIndexed: isIndexed(album, items),
    head: headTags(album, part, words.feed),
    style,
    placeholder: placeholderCss(items),
    files: [...items.flatMap(({ urls }) => [urls.jpg, urls.mp4]), album.filesRedirectUrl],
    ...(items.length > 0 && { modules: ['album.js'], scripts: [`${album.siteUrl}assets/previews.js`] }),
    body: html`<header><a href="${album.siteUrl}">${album.siteName}</a></header>
<main>
<div class="intro">
<h1 dir="auto">${album.title}</h1>
${album.description && html`<p class="description" dir="auto">${album.description}</p>\n`}</div>
${items.length > 0 ? html`<ul class="grid">\n${items.map((item, index) => tile(item, index, language))}</ul>` : html`<p class="empty">${words.empty}</p>`}
${more.length > 0 && html`<nav class="parts">${more}</nav>\n`}</main>`,
  })
}

/** The page at the address of an unknown album. */
export function missingAlbum({ siteName, siteUrl }: Pick<AlbumView, 'siteName' | 'siteUrl'>, language: Language): Page {
  const words = albumWords[language]
  return mediaDocument({
    language,
    title: `${words.missing} · ${siteName}`,
    siteUrl,
    style,
    body: html`<header><a href="${siteUrl}">${siteName}</a></header>
<main>
<div class="intro">
<h1>${words.missing}</h1>
<a class="onward" href="${siteUrl}">${words.home}</a>
</div>
</main>`,
  })
}

const areAllSensitive = (items: readonly ClipView[]) => items.length > 0 && items.every(({ nsfw }) => nsfw)

const isIndexed = ({ isListed }: AlbumView, items: readonly ClipView[]) => isListed && !areAllSensitive(items)

/** Head for crawlers, chats and feed readers. A private album has none, because a chat would keep it after the link. */
function headTags(album: AlbumView, { items, cover, url, next }: AlbumPart, feedTitle: string): Html {
  const { title, description, urls, isListed, isLinked } = album
  return html`<link rel="canonical" href="${url}">
${next !== undefined && html`<link rel="next" href="${next}">\n`}${description && html`<meta name="description" content="${description}">\n`}${areAllSensitive(items) && html`<meta name="rating" content="adult">\n`}${urls.feed && html`<link rel="alternate" type="application/atom+xml" href="${urls.feed}" title="${feedTitle}">\n`}${isListed && oembedLinks(album)}${!isLinked && openGraph(album, cover)}${
  isListed &&
  cover &&
  jsonLd({
    '@context': 'https://schema.org',
    '@type': 'CollectionPage',
    name: title,
    description,
    url: urls.page,
    video: videoData(cover),
  })
}
`
}

function oembedLinks({ oembedEndpoint, urls, title }: AlbumView): Html {
  const address = `${oembedEndpoint}?url=${encodeURIComponent(urls.page)}&format=`
  return html`<link rel="alternate" type="application/json+oembed" href="${address}json" title="${title}">
<link rel="alternate" type="text/xml+oembed" href="${address}xml" title="${title}">
`
}

function openGraph({ siteName, title, description, urls }: AlbumView, cover: ClipView | undefined): Html {
  const properties: Property[] = [
    ['og:type', 'website'],
    ['og:site_name', siteName],
    ['og:title', title],
    ...(description ? [['og:description', description] satisfies Property] : []),
    ['og:url', urls.page],
    ...(cover ? mediaOf(cover) : []),
  ]
  return html`${metaOf(properties)}<meta name="twitter:card" content="${cover ? 'summary_large_image' : 'summary'}">
<meta name="twitter:title" content="${title}">
${cover && html`<meta name="twitter:image" content="${cover.urls.jpg}">\n`}`
}

/** Width of a still in the grid. */
const STILL_WIDTH = 320

const stillOf = ({ urls }: ClipView) => urls.jpg.replace(/\.jpg(?=\?|$)/, `/w${STILL_WIDTH}.webp`)

function tile(clip: ClipView, index: number, language: Language): Html {
  const { urls, nsfw } = clip
  const title = titleOf(clip)
  const seconds = new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(clip.durationSeconds)
  const about = html`<span class="name" dir="auto">${title}</span><span class="length">${seconds} s</span>`
  const width = Math.min(STILL_WIDTH, clip.width)
  const size = { width, height: Math.max(1, Math.round((width * clip.height) / clip.width)) }
  if (!nsfw) {
    return html`<li><a href="${urls.page}" data-mp4="${urls.mp4}"><span class="frame p${index}"><img src="${stillOf(clip)}" width="${size.width}" height="${size.height}" alt="" loading="lazy" decoding="async"></span>${about}</a></li>
`
  }
  // No picture element: previews without one in the head take one of the page.
  const picture = html`<a href="${urls.page}" data-mp4="${urls.mp4}" aria-label="${title}"><span class="frame"><video poster="${stillOf(clip)}" width="${size.width}" height="${size.height}" preload="none" muted playsinline></video></span></a>`
  return html`<li>${gate(picture, false, albumWords[language])}<a href="${urls.page}">${about}</a></li>
`
}

/** Colours of each clip until its still has loaded. A sensitive clip reveals none before its gate. */
function placeholderCss(items: readonly ClipView[]): string | undefined {
  const rules = items.flatMap(({ placeholder, nsfw }, index) => {
    const picture = placeholder && !nsfw ? placeholderPicture(placeholder) : undefined
    return picture ? [`.p${index} { background-image: url(${picture}) }`] : []
  })
  return rules.length > 0 ? rules.join('\n') : undefined
}
