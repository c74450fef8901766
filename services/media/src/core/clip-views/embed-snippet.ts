import { html, toText } from '@services/common/html'
import type { Size } from '../clips/geometry.ts'
import { type ClipView, titleOf } from './clip-view.ts'

/** Largest box for a clip on any page that asks for no other size. */
const STAGE: Size = { width: 960, height: 640 }

/** Size of a clip on a page: that of its files, reduced to fit `limits` and the stage, but at least one pixel. */
export function embedSize({ width, height }: Size, limits: Partial<Size> = {}): Size {
  const { width: maxWidth = Infinity, height: maxHeight = Infinity } = limits
  const scale = Math.min(1, Math.min(STAGE.width, maxWidth) / width, Math.min(STAGE.height, maxHeight) / height)
  return { width: Math.max(1, Math.floor(width * scale)), height: Math.max(1, Math.floor(height * scale)) }
}

/**
 * The iframe for other sites: `embed` of a result and `html` of oEmbed. The style narrows it with its column,
 * `frameborder` and `scrolling` are for old forums, `allow` permits autoplay and full screen.
 */
export function embedSnippet(clip: ClipView, { width, height }: Size = embedSize(clip)): string {
  return toText(
    html`<iframe src="${clip.urls.embed}" width="${width}" height="${height}" style="max-width:100%;height:auto;aspect-ratio:${width}/${height}" frameborder="0" scrolling="no" allowfullscreen allow="autoplay; fullscreen" loading="lazy" title="${titleOf(clip)}"></iframe>`,
  )
}

/**
 * The element `<media-clip>` for other sites, with the script that defines it and a link for readers without scripts.
 */
export function elementSnippet(clip: ClipView): string {
  const { width, height } = embedSize(clip)
  return toText(
    html`<script src="${clip.siteUrl}embed.js" async></script>
<media-clip src="${clip.urls.page}" width="${width}" height="${height}" autoplay muted loop><a href="${clip.urls.page}">${titleOf(clip)}</a></media-clip>`,
  )
}
