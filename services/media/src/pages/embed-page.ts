import { type ClipView, titleOf } from './clip-view.ts'
import { html, raw, toText } from './html.ts'
import { pagePolicy } from './page-policy.ts'
import { placeholderStyle, player, refreshTag } from './player.ts'
import { embedPageCss } from './styles.ts'

/** The Content-Security-Policy that goes with `embedPage`; pass the same `scriptUrl`. Any site may frame the player. */
export const embedPagePolicy = pagePolicy({ css: embedPageCss, frameAncestors: '*' })

/**
 * The HTML document at /embed/{id}: the clip fills whatever frame it is given. With a `scriptUrl` (which must serve
 * `EMBED_SCRIPT`) the clip also rests while it is off screen; it works all the same without.
 */
export function embedPage(clip: ClipView, { scriptUrl }: { scriptUrl?: string } = {}): string {
  return toText(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark">
<meta name="robots" content="noindex">
<title>${titleOf(clip)} · ${clip.siteName}</title>
<link rel="canonical" href="${clip.urls.page}">
${refreshTag(clip)}<style>${raw(embedPageCss)}</style>${placeholderStyle(clip)}
${scriptUrl && html`<script src="${scriptUrl}" defer></script>\n`}</head>
<body>
${player(clip, clip)}
<a class="home" href="${clip.urls.page}" target="_blank" rel="noopener" dir="auto">${titleOf(clip)}</a>
</body>
</html>
`)
}

/** Pauses the clip while less than a quarter of it is seen, and goes on only if it was this script that paused it. */
export const EMBED_SCRIPT = `for (const video of document.querySelectorAll('video')) {
  let pausedHere = false
  new IntersectionObserver((entries) => {
    const entry = entries.at(-1)
    if (entry.isIntersecting && pausedHere) { pausedHere = false; video.play().catch(() => {}) }
    if (!entry.isIntersecting && !video.paused) { pausedHere = true; video.pause() }
  }, { threshold: 0.25 }).observe(video)
}
`
