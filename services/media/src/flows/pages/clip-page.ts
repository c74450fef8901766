// Pages, the embed player and oEmbed. Pure functions from a ClipView to text; all text of users goes through `html`,
// and no script is inline. Tests: here, and test/browser.slow.test.ts.
import { type Html, html } from '@services/common/html'
import { type ClipView, formatSeconds, titleOf } from '../../core/clip-views/clip-view.ts'
import { elementSnippet, embedSize, embedSnippet } from '../../core/clip-views/embed-snippet.ts'
import { creditOf } from '../../core/clips/credit.ts'
import { FIRST_KINDS } from '../../db/tables.ts'
import { mediaDocument, type Page, styleOf } from './document.ts'
import { headTags } from './head-tags.ts'
import { player, playerSources, refreshTag } from './player.ts'
import { clipPageCss } from './styles.ts'

const style = styleOf(clipPageCss)

/** The page at /gif/{id}, for all states of a clip. */
export const clipPage = (clip: ClipView): Page =>
  mediaDocument({
    title: `${titleOf(clip)} · ${clip.siteName}`,
    siteUrl: clip.siteUrl,
    isIndexed: true,
    head: html`${refreshTag(clip)}${headTags(clip)}`,
    style,
    ...playerSources(clip),
    modules: clip.isShowable ? ['clip.js'] : [],
    body: html`<header><a href="${clip.siteUrl}">${clip.siteName}</a></header>
<main>
<article class="clip">
<div class="stage">
${player(clip, embedSize(clip))}
</div>
<div class="about">
<h1 dir="auto">${titleOf(clip)}</h1>
<p class="facts">${facts(clip)}</p>
${tagList(clip)}${clip.isShowable && share(clip)}${clip.state === 'failed' && onward(clip)}
</div>
</article>
</main>`,
  })

/** The page at the URL of an unknown or deleted clip. */
export const missingPage = ({ message, siteName, siteUrl }: Missing): Page =>
  mediaDocument({
    title: `${message} · ${siteName}`,
    siteUrl,
    style,
    body: html`<header><a href="${siteUrl}">${siteName}</a></header>
<main>
<article>
<div class="about">
<h1>${message}</h1>
<a class="onward" href="${siteUrl}">Add a clip of your own</a>
</div>
</article>
</main>`,
  })

/** The site, and the reason why a clip is missing. */
export type Missing = Pick<ClipView, 'siteName' | 'siteUrl'> & { message: string }

function facts(clip: ClipView): Html {
  const date = html`<time datetime="${clip.createdAt.toISOString()}">${dateFormat.format(clip.createdAt)}</time>`
  const shape = html`<span>${clip.width} × ${clip.height}</span><span>${formatSeconds(clip)}</span>`
  return html`${credit(clip)}${date}${shape}${clip.hasAudio && html`<span>With sound</span>`}`
}

/** Users choose the URL: search engines must not count it, and it gets no handle on our window. */
function credit({ attribution }: ClipView): Html | false {
  if (!attribution) return false
  const { label, url } = creditOf(attribution)
  if (!url) return html`<span dir="auto">${label}</span>`
  return html`<a class="credit" href="${url}" rel="nofollow ugc noopener" dir="auto">${label}</a>`
}

function tagList({ tags }: ClipView): Html | false {
  return tags.length > 0 && html`<ul class="tags">${tags.map((tag) => html`<li dir="auto">${tag}</li>`)}</ul>\n`
}

const onward = ({ siteUrl }: ClipView): Html => html`<a class="onward" href="${siteUrl}">Add another clip</a>`

const FILES = [
  ['gif', 'GIF'],
  ['mp4', 'MP4'],
  ['webm', 'WebM'],
  ['jpg', 'JPG'],
] as const

const toDownload = (url: string) => `${url}${url.includes('?') ? '&' : '?'}download=1`

/** `?download=1` names the file after the clip; the `download` attribute has no effect on another host. */
function share(clip: ClipView): Html {
  const isReady = clip.state === 'ready'
  const stored = FILES.filter(([kind]) => isReady || FIRST_KINDS.some((first) => first === kind))
  const files = stored.map(
    ([kind, name]) => html`<a href="${toDownload(clip.urls[kind])}" aria-label="Save as ${name}">${name}</a>`,
  )
  return html`<nav class="formats" aria-label="Files"><span>Save as</span>${files}</nav>
${!isReady && html`<p class="facts">GIF and WebM are still being made. <a href="${clip.urls.page}">Reload</a></p>\n`}<div class="copies"><button type="button" data-copy="${clip.urls.page}" hidden>Copy link</button><button type="button" data-copy="${embedSnippet(clip)}" hidden>Copy embed code</button></div>
<p class="unseen" role="status"></p>
<details class="embed">
<summary>Embed</summary>
<textarea readonly rows="4" aria-label="Embed code" spellcheck="false">${embedSnippet(clip)}</textarea>
<p class="facts"><span>Or as an element of your own page, which shows a still first:</span></p>
<textarea readonly rows="4" aria-label="Code of the element" spellcheck="false">${elementSnippet(clip)}</textarea>
</details>
${reportLink(clip)}`
}

const reportLink = ({ urls }: ClipView): Html | false =>
  urls.report !== undefined && html`<p class="report"><a href="${urls.report}" rel="nofollow">Report this clip</a></p>`

const dateFormat = new Intl.DateTimeFormat('en', { dateStyle: 'long', timeZone: 'UTC' })
