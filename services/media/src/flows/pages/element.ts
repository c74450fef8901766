import { thumbHashToAverageRGBA } from 'thumbhash'
import { type ClipView, titleOf } from '../../core/clip-views/clip-view.ts'
import { embedSize } from '../../core/clip-views/embed-snippet.ts'
import { posterOf, videoSources } from './player.ts'

/** Data of a clip for `<media-clip>` (assets/embed.js). Undefined members are left out. */
export function elementData(clip: ClipView) {
  return {
    state: clip.state,
    title: titleOf(clip),
    nsfw: clip.nsfw,
    ...embedSize(clip),
    ...(clip.isShowable && {
      /** A sensitive clip reveals no colours before its gate. */
      color: clip.nsfw ? undefined : colorOf(clip),
      poster: posterOf(clip),
      sources: videoSources(clip),
    }),
  }
}

/** Average of an opaque poster, as in `#1d5fd6`. */
function colorOf({ placeholder }: ClipView): string | undefined {
  if (!placeholder) return undefined
  const { r, g, b, a } = thumbHashToAverageRGBA(placeholder)
  const byteOf = (part: number) => Math.round(Math.min(1, Math.max(0, part)) * 255)
  const digits = (part: number) => byteOf(part).toString(16).padStart(2, '0')
  return a < 1 ? undefined : `#${digits(r)}${digits(g)}${digits(b)}`
}
