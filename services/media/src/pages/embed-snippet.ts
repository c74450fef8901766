import { type ClipView, titleOf } from './clip-view.ts'
import { html, toText } from './html.ts'

export interface Size {
  width: number
  height: number
}

/**
 * The iframe that shows the clip on other sites: the `embed` member of a result and the `html` of oEmbed. `frameborder`
 * and `scrolling` are for old forums; `allow` lets the frame play and go full screen.
 */
export function embedSnippet(clip: ClipView, { width, height }: Size = clip): string {
  return toText(
    html`<iframe src="${clip.urls.embed}" width="${width}" height="${height}" frameborder="0" scrolling="no" allowfullscreen allow="autoplay; fullscreen" loading="lazy" title="${titleOf(clip)}"></iframe>`,
  )
}
