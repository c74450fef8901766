/**
 * Owns what people, crawlers and other sites see of a clip: its page, the embed player, oEmbed and the iframe snippet.
 * The rule: pure functions from a ClipView to text; everything a user wrote goes through `html`. No inline scripts.
 * Where to look next: clip-view.ts (the input), head-tags.ts (cards and previews), player.ts (shared with embed-page.ts).
 */

import { type ClipView, formatSeconds, titleOf } from './clip-view.ts'
import { creditOf } from './credit.ts'
import { htmlDocument } from './document.ts'
import { embedSnippet, type Size } from './embed-snippet.ts'
import { headTags } from './head-tags.ts'
import { type Html, html } from './html.ts'
import { pagePolicy } from './page-policy.ts'
import { placeholderCss } from './placeholder.ts'
import { player, refreshTag } from './player.ts'
import { clipPageCss } from './styles.ts'

/** The box a clip is shown in on a large screen; smaller screens shrink it by CSS. */
const STAGE: Size = { width: 960, height: 640 }

/** Beyond this, a small clip is only blurred, not bigger. */
const MAX_ENLARGEMENT = 2

/** The Content-Security-Policy that goes with `clipPage`. */
export const clipPagePolicy = pagePolicy({ css: clipPageCss, frameAncestors: "'none'" })

/** The HTML document at /gif/{id}, in every state of the clip. */
export const clipPage = (clip: ClipView): string =>
  htmlDocument({
    title: `${titleOf(clip)} · ${clip.siteName}`,
    head: html`${refreshTag(clip)}${headTags(clip)}`,
    styles: [clipPageCss, placeholderCss(clip)],
    body: html`<header><a href="${clip.siteUrl}">${clip.siteName}</a></header>
<main>
<article>
<div class="stage">
${player(clip, displaySize(clip))}
</div>
<div class="about">
<h1 dir="auto">${titleOf(clip)}</h1>
<p class="facts">${facts(clip)}</p>
${tagList(clip)}${clip.state === 'ready' && share(clip)}
</div>
</article>
</main>`,
  })

function facts(clip: ClipView): Html {
  const date = html`<time datetime="${clip.createdAt.toISOString()}">${dateFormat.format(clip.createdAt)}</time>`
  const shape = html`<span>${clip.width} × ${clip.height}</span><span>${formatSeconds(clip)}</span>`
  return html`${credit(clip)}${date}${shape}${clip.hasAudio && html`<span>With sound</span>`}`
}

/** Users choose the address: no vote for it in search engines, and no handle on our window. */
function credit({ attribution }: ClipView): Html | false {
  if (!attribution) return false
  const { label, url } = creditOf(attribution)
  if (!url) return html`<span dir="auto">${label}</span>`
  return html`<a class="credit" href="${url}" rel="nofollow ugc noopener" dir="auto">${label}</a>`
}

function tagList({ tags }: ClipView): Html | false {
  return tags.length > 0 && html`<ul class="tags">${tags.map((tag) => html`<li dir="auto">${tag}</li>`)}</ul>\n`
}

function share(clip: ClipView): Html {
  return html`<nav class="formats" aria-label="Files"><a href="${clip.urls.gif}">GIF</a><a href="${clip.urls.mp4}">MP4</a><a href="${clip.urls.webm}">WebM</a><a href="${clip.urls.jpg}">JPG</a></nav>
<details class="embed">
<summary>Embed</summary>
<textarea readonly rows="4" aria-label="Embed code" spellcheck="false">${embedSnippet(clip)}</textarea>
</details>`
}

function displaySize({ width, height }: ClipView): Size {
  const scale = Math.min(MAX_ENLARGEMENT, STAGE.width / width, STAGE.height / height)
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) }
}

const dateFormat = new Intl.DateTimeFormat('en', { dateStyle: 'long', timeZone: 'UTC' })
