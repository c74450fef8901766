import { html } from '@services/common/html'
import { type ClipView, titleOf } from '../../core/clips/clip-view.ts'
import { htmlDocument } from './document.ts'
import { pagePolicy } from './page-policy.ts'
import { placeholderCss } from './placeholder.ts'
import { player, refreshTag } from './player.ts'
import { embedPageCss } from './styles.ts'

/** The Content-Security-Policy of `embedPage` with the same `scriptUrl`. Any page or application may frame it. */
export const embedPagePolicy = pagePolicy({ css: embedPageCss })

/** The HTML document at /embed/{id}: the clip fills its frame. `scriptUrl` serves `EMBED_SCRIPT`, which is optional. */
export const embedPage = (clip: ClipView, { scriptUrl }: { scriptUrl?: string } = {}): string =>
  htmlDocument({
    title: `${titleOf(clip)} · ${clip.siteName}`,
    siteUrl: clip.siteUrl,
    colorScheme: 'dark',
    noindex: true,
    head: html`<link rel="canonical" href="${clip.urls.page}">
${refreshTag(clip)}${scriptUrl && html`<script src="${scriptUrl}" defer></script>\n`}`,
    styles: [embedPageCss, placeholderCss(clip)],
    body: html`${player(clip, clip)}
<a class="home" href="${clip.urls.page}" target="_blank" rel="noopener" dir="auto">${titleOf(clip)}</a>`,
  })

/** Pauses the clip while less than a quarter of it is visible, and resumes it only if this script paused it. */
export const EMBED_SCRIPT = `for (const video of document.querySelectorAll('video')) {
  let pausedHere = false
  new IntersectionObserver((entries) => {
    const entry = entries.at(-1)
    if (entry.isIntersecting && pausedHere) { pausedHere = false; video.play().catch(() => {}) }
    if (!entry.isIntersecting && !video.paused) { pausedHere = true; video.pause() }
  }, { threshold: 0.25 }).observe(video)
}
`
