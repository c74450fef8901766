import { html, toText } from '@services/common/html'
import { type ClipView, titleOf } from './clip-view.ts'

export interface Size {
  width: number
  height: number
}

/** The largest box in which a page of ours or of others shows a clip that asks for no other size. */
const STAGE: Size = { width: 960, height: 640 }

/** Size of a clip on a page: that of its files, smaller where `limits` or the stage are; shape kept, at least one pixel. */
export function embedSize({ width, height }: Size, limits: Partial<Size> = {}): Size {
  const { width: maxWidth = Infinity, height: maxHeight = Infinity } = limits
  const scale = Math.min(1, Math.min(STAGE.width, maxWidth) / width, Math.min(STAGE.height, maxHeight) / height)
  return { width: Math.max(1, Math.floor(width * scale)), height: Math.max(1, Math.floor(height * scale)) }
}

/**
 * The iframe that shows the clip on other sites: the `embed` member of a result and the `html` of oEmbed. The style makes
 * it narrower where its column is; `frameborder` and `scrolling` are for old forums; `allow` lets the frame play and go
 * full screen.
 */
export function embedSnippet(clip: ClipView, { width, height }: Size = embedSize(clip)): string {
  return toText(
    html`<iframe src="${clip.urls.embed}" width="${width}" height="${height}" style="max-width:100%;height:auto;aspect-ratio:${width}/${height}" frameborder="0" scrolling="no" allowfullscreen allow="autoplay; fullscreen" loading="lazy" title="${titleOf(clip)}"></iframe>`,
  )
}
